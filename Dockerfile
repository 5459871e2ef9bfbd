# The app in a container that needs no network to be built: everything is installed from the folder wheels/, made
# beforehand, where there is one, by the same Python and processor (add the index of PyTorch's CPU builds, as its page
# "Get started" shows it, and the image is a tenth of the size):
#
#     pip wheel --constraint constraints.txt --wheel-dir wheels .
#     docker build --network none --tag magnet-lab .
#     docker run --publish 7860:7860 --volume magnet-lab:/data magnet-lab
#
# `small` is fetched once into the volume; with `--env MODEL=tiny` nothing is fetched at all. Where the container has no
# network either, copy ~/.cache/magnet_lab of a machine that has fetched it into the volume, as its folder cache/.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim AS built
# Wheels stay in this stage: only what they install goes into the image.
COPY wheels /wheels
RUN python -m venv /opt/magnet-lab \
 && /opt/magnet-lab/bin/pip install --no-cache-dir --no-index --find-links /wheels magnet-lab

FROM python:${PYTHON}-slim
RUN useradd --create-home --uid 1000 lab && mkdir /data && chown lab /data
COPY --from=built /opt/magnet-lab /opt/magnet-lab
USER lab
WORKDIR /home/lab
ENV PATH=/opt/magnet-lab/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 PORT=7860 MODEL=small \
    MAGNET_LAB_CACHE=/data/cache MAGNET_LAB_RATINGS=/data/ratings MAGNET_LAB_RESULTS=/data/results
VOLUME /data
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/', timeout=4)"]
CMD ["python", "-m", "magnet_lab.app"]
