"""The pages, and the program that writes what the code says into them."""
