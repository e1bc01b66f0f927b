"""A streamparse project on disk: its folders, the environments of its config.json, and the options of a topology."""
