"""A job under a supervisor process of its own: what schedulers have in common that keep one."""
