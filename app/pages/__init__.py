"""The pages of the app, one file each: `TITLE`, `PATH`, `PURPOSE` in a sentence, and `page(demo, loading)`."""
