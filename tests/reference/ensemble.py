"""Base clusterings and their agreement by plain loops."""

import numpy as np


def bipartite(labels):
    """B of uspec_usenc_2019, eq. (18) and (19): dense (n, c), base clusters by base clustering and label."""
    columns = []
    for column in labels.T:
        for value in sorted({int(value) for value in column if value >= 0}):
            columns.append([float(label == value) for label in column])
    return np.array(columns).T


def agreement(labels, consensus):
    """Mean over a row's labels of the share of that base cluster which lies in the row's consensus cluster."""
    out = np.full(len(labels), np.nan)
    for x in range(len(labels)):
        shares = []
        for column in range(labels.shape[1]):
            if labels[x, column] >= 0:
                members = labels[:, column] == labels[x, column]
                shares.append(np.mean(consensus[members] == consensus[x]))
        if shares and consensus[x] >= 0:
            out[x] = np.mean(shares)
    return out
