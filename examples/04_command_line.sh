#!/usr/bin/env bash
# The command line from data to scored labels.
#
#     examples/04_command_line.sh
#
# DASKCLUSTER_EXAMPLE_ROWS sets the number of rows. All files go to the current folder.
set -euo pipefail

rows=${DASKCLUSTER_EXAMPLE_ROWS:-1000000}

# Generated data with its true classes. Your own npy, npz, csv or parquet file becomes a Zarr array by
#     daskcluster convert FILE rows.zarr
daskcluster make flower rows.zarr -n "$rows" --seed 0 --labels classes.zarr
daskcluster info rows.zarr

# Before anything runs: passes over the data, bytes, peak memory of a worker.
daskcluster plan rows.zarr -k 13

# Labels and model appear when they are complete. A run that is killed goes on in run/ when the same command is given
# again. Progress is on standard error.
daskcluster fit rows.zarr -k 13 --seed 0 --storage run --labels labels.zarr --model model.zarr
daskcluster score classes.zarr labels.zarr

# The model labels new rows. With --json, a command prints one object for the next program.
daskcluster make flower new.zarr -n 10000 --seed 1 --quiet
daskcluster predict new.zarr --model model.zarr --labels new-labels.zarr --quiet --json
