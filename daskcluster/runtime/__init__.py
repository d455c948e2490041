"""Where and how stages run: execution, stage boundaries, forecast, progress, seeds, threads."""
