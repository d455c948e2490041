"""Ensembles of base clusterings, on top of the stages.

====================  ==================================================================
generation.py         base clusterer, m seeds     -> base clusterings            (n, m)
incidence.py          base clusterings            -> bipartite graph             (n, m) edges to c
spectral.py           incidence                   -> weighted k-means on its rows (SEC)
projection.py         incidence                   -> sparse random projection    (n, rd)
overlaps.py           incidence                   -> rows that base clusters share, local weights
utility_kmeans.py     incidence                   -> k-means by a consensus utility (KCC)
meta_clusters.py      shared rows                 -> clusters of base clusters, votes (ECPCS)
lowrank.py            co-association              -> its low-rank representation (ISEC)
====================  ==================================================================
"""
