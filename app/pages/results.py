"""Results: what was measured, beside what the paper printed, and which of its claims hold."""

import gradio as gr

from .. import links
from ..components import download, notice, picture, table
from ..components.answers import answer
from ..components.attempt import attempt
from ..components.header import header
from ..handlers import results
from ..loading import Loading

TITLE, PATH = "Results", "results"
PURPOSE = (
    "Every table and figure as it was measured here, with the paper's numbers beside it, which are LLaMA-2-7B's: which "
    "claims hold?"
)


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, None, TITLE, PURPOSE, PATH)
    gr.Markdown("## The claims at a glance")
    counts = notice.component()
    claims = table.component()
    gr.Markdown("## One table or figure")
    with gr.Row():
        model = gr.Dropdown([], label="Model", allow_custom_value=False, min_width=120, scale=1)
        id = gr.Dropdown([], label="Table or figure", allow_custom_value=False, min_width=260, scale=4)
    problem = notice.component(problem=True)
    heading = gr.Markdown()
    numbers = table.component()
    verdicts = table.component()
    drawing = picture.component()
    with gr.Accordion("The picture as text", open=False, visible=False) as twin_holder:
        twin = gr.Textbox(show_label=False, interactive=False, elem_classes=["twin"], buttons=["copy"], max_lines=60)
    written = gr.Markdown(visible=False)
    facts = table.component()
    command = gr.Textbox(label="The command that measures it", interactive=False, buttons=["copy"])
    files = download.component()
    links.share(demo, {"model": model, "table": id}, fill=False)

    def begin(request: gr.Request):
        """The overview, and the menus as a link wants them: `results?model=small&table=table2`."""
        loading.libraries()
        over = results.overview(loading.name)
        there = results.models(loading.name)
        asked = dict(request.query_params) if request else {}
        name = asked["model"] if asked.get("model") in there else results.own_or_measured(loading.name)
        tables = results.tables(loading.name, name)
        wanted = asked.get("table")
        wanted = wanted if wanted in [id for _, id in tables] else results.first_measured(loading.name, name)
        return (
            notice.render(over.sentences),
            table.render("Claims, by model", over.columns, [line.cells for line in over.lines], tall=False),
            gr.update(choices=there, value=name),
            gr.update(choices=tables, value=wanted),
            *attempt(show, len(shown))(name, wanted),
        )

    def menu(name: str, id: str):
        """Another model has measured other tables."""
        loading.libraries()
        tables = results.tables(loading.name, name)
        kept = id if id in [each for _, each in tables] else results.first_measured(loading.name, name)
        return gr.update(choices=tables, value=kept), *attempt(show, len(shown))(name, kept)

    def show(name: str, id: str):
        loading.libraries()
        view = results.show(loading.name, name, id)
        papers = {place for place, line in enumerate(view.lines) if line.is_papers}
        stated = [[results.marked(verdict), claim] for claim, verdict in view.claims]
        caption = "What was measured; in italics what the paper printed" if view.file else "What the paper printed"
        return (
            f"### {view.title}",
            table.render(caption, view.columns, [line.cells for line in view.lines], papers),
            table.render("What the paper claims", [f"with {name}", "claim"], stated),
            picture.render(view.figure, view.title) if view.figure else "",
            gr.update(visible=bool(view.text)),
            view.text,
            gr.update(value=view.written, visible=bool(view.written)),
            table.render("How it was measured", ["", ""], [list(fact) for fact in view.facts]),
            view.command,
            download.render(("Download the figures (JSON)", view.file_name, view.file)) if view.file else "",
        )

    shown = [heading, numbers, verdicts, drawing, twin_holder, twin, written, facts, command, files]
    at_once = {"queue": False, "show_progress": "hidden"}
    demo.load(begin, None, [counts, claims, model, id, problem, *shown], api_visibility="private", **at_once)
    # `input`, not `change`: what a menu is set to by the page itself is shown already.
    model.input(menu, [model, id], [id, problem, *shown], api_visibility="private", **at_once)
    id.input(attempt(show, len(shown)), [model, id], [problem, *shown], api_visibility="private", **at_once)
    _endpoints(loading)


def _endpoints(loading: Loading) -> None:
    @answer
    def results_claims() -> list[dict]:
        """Every claim of what was measured: where it stands, its text, and a verdict for each model."""
        loading.libraries()
        over = results.overview(loading.name)
        return [dict(zip(["where", *over.columns[1:]], line.cells, strict=True)) for line in over.lines]

    @answer
    def results_table(model: str, table: str) -> dict:
        """One table or figure of one model.

        Args:
            model: "tiny", "small" …
            table: its id, "table2" say.

        Returns:
            title, columns, rows (the paper's begin with "paper:"), claims with verdicts, facts and the command.
        """
        loading.libraries()
        view = results.show(loading.name, model, table)
        return {
            "title": view.title,
            "columns": view.columns,
            "rows": [line.cells for line in view.lines],
            "claims": [list(claim) for claim in view.claims],
            "facts": dict(view.facts),
            "command": view.command,
        }

    for endpoint in (results_claims, results_table):
        gr.api(endpoint, api_name=endpoint.__name__, queue=False)
