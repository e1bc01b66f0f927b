"""The scheduler ``local``: containers are processes of this machine, kept running by a supervisor process."""
