"""Programs that measure what frameworks cost, and write the pages of docs that show it."""
