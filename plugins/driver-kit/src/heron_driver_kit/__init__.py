"""What drivers share, and no engine process loads: checked names, transfers of packages, buffers, errors."""
