"""Parts of the tuple path in C. The engine uses them where this distribution is installed, and needs none of them."""
