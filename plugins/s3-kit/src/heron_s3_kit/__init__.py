"""What drivers share that keep objects in an S3 bucket: options, a client, and errors with remedies."""
