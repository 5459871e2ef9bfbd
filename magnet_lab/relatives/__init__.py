"""Systems related to MAGNET, each small enough to be read and trained in minutes: one folder or file a document."""
