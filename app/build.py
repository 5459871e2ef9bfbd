"""The app put together, and served."""

import os
from pathlib import Path

import gradio as gr

from magnet_lab.viz import palette

from . import deployment, limits
from .gate import Gate
from .menu import Menu
from .pages import embeddings, generate, infill, judge, masks, objectives, relatives, results, start, train
from .port import check_port

PAGES = (masks, objectives, infill, embeddings, generate, train, relatives, results, judge)

_FONT = ["system-ui", "-apple-system", "Segoe UI", "sans-serif"]  # the reader's own: nothing is fetched from elsewhere
_MONOSPACED = ["ui-monospace", "DejaVu Sans Mono", "Consolas", "monospace"]


def build(model: str = "small") -> gr.Blocks:
    """The pages, around a model that begins to load in the background, and others that can be chosen instead."""
    loading = Menu(deployment.models(model))
    hours = limits.FILE_HOURS * 3600
    with gr.Blocks(title="magnet_lab", analytics_enabled=False, delete_cache=(hours, hours)) as demo:
        start.page(demo, loading, PAGES)
    for page in PAGES:
        with demo.route(page.TITLE, page.PATH):
            page.page(demo, loading)
    demo.queue(max_size=limits.WAITING)
    loading.start()
    return demo


def launch(demo: gr.Blocks, host: str = "127.0.0.1", port: int = 7860, *, block: bool = True) -> None:
    """Serve a built app as it is meant to be served: no public link, no request to another host."""
    # Gradio calls itself once to see whether it is up, and a proxy for the world outside must not answer that.
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1,localhost"]))
    demo.launch(
        server_name=host,
        server_port=port,
        root_path=deployment.root_path(),
        auth=deployment.auth(),
        auth_message="Sign in with the name and the password that you were given.",
        app_kwargs={"middleware": [(Gate, (), {"demo": demo})]},  # what starlette unpacks: class, arguments, keywords
        max_file_size=limits.FILE_BYTES,
        mcp_server=deployment.has_mcp(),
        prevent_thread_lock=True,
        quiet=True,
        share=False,
        ssr_mode=False,
        run_history=False,
        footer_links=["api", "settings"],
        theme=_theme(),
        css=palette.css() + (Path(__file__).parent / "style.css").read_text(encoding="utf-8"),
    )
    print(f"magnet_lab is at http://{host}:{port}", flush=True)
    if block:
        demo.block_thread()


def _theme() -> gr.themes.Base:
    theme = gr.themes.Default(primary_hue="blue", font=_FONT, font_mono=_MONOSPACED)
    # Gradio's own greys for small text, blue and red for buttons are too faint to read (4.5:1 is the least).
    softer, softer_dark = "*neutral_600", "*neutral_300"
    return theme.set(
        body_text_color_subdued=softer,
        body_text_color_subdued_dark=softer_dark,
        block_info_text_color=softer,
        block_info_text_color_dark=softer_dark,
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_background_fill_hover_dark="*primary_700",
        button_cancel_background_fill="#dc2626",
        button_cancel_background_fill_hover="#b91c1c",
        button_cancel_background_fill_dark="#b91c1c",
        button_cancel_background_fill_hover_dark="#991b1b",
    )


def serve(model: str = "small", host: str = "127.0.0.1", port: int = 7860) -> None:
    """Serve the app until it is interrupted.

    Raises:
        SystemExit: with a sentence, if the port cannot be had.
    """
    check_port(host, port)
    launch(build(model), host, port)
