"""The measurements that the README quotes: `magnet-lab bench NAME` runs one module."""
