"""The stages, from the store to the labels.

====================  =  ==================================================================
rows.py               0  Zarr or array X          -> checked canonical row blocks  (n, d)
representatives.py    1  rows                     -> representatives               (p, d)
neighbors.py          2  rows, representatives    -> K nearest, distances          (n, K)
affinity.py           3  K nearest, distances     -> bipartite graph               (n, K) edges to p
bipartite.py             the graph itself: K edges a row, right size p
cut.py                4  bipartite graph          -> transfer cut, embedding       (n, k)
discretize.py         5  embedding                -> labels                        (n,)
kmeans.py                weighted k-means, in memory and by passes over all blocks
====================  =  ==================================================================
"""
