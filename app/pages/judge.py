"""Judge: people say which of the sentences written into stories fit, without knowing which system wrote them."""

import gradio as gr

from ..components import download, judged_story, notice, table
from ..components.answers import answer
from ..components.attempt import attempt
from ..components.header import header
from ..handlers import judge
from ..loading import Loading

TITLE, PATH = "Judge", "judge"
PURPOSE = (
    "A sentence is missing from each story, and a system wrote one in its place. Say whether it fits; which system it "
    "was you do not see. That is how the paper's Table 5 was made."
)

CONSENT = (
    "I take part of my own free will. My answers are kept under the code name that I choose, with the time and with "
    "nothing else about me, and may be published as percentages. I can stop whenever I like and delete all of them."
)

SECONDS_A_STORY = 15


def page(demo: gr.Blocks, loading: Loading) -> None:
    header(demo, None, TITLE, PURPOSE, PATH)
    # What lies there is the rater's key. The secret only makes it readable after a restart; it protects nothing, as
    # whoever can read a browser's storage can read the page's source.
    key = gr.BrowserState("", storage_key="magnet-lab-judge", secret="magnet-lab-judge")
    note, problem = notice.component(), notice.component(problem=True)
    with gr.Column(visible=False) as welcome:
        consents = gr.Checkbox(label=CONSENT)
        name = gr.Textbox(
            label="Code name",
            max_lines=1,
            info="Any name but your own. This browser remembers it, so that you can go on later.",
        )
        begin = gr.Button("Begin", variant="primary")
    with gr.Column(visible=False) as judging:
        story = judged_story.component()
        gr.Markdown(f"**{judge.QUESTION}**")
        item = gr.Number(visible=False)
        with gr.Row():
            yes = gr.Button("Yes, it fits", variant="primary", elem_id="judge-yes", min_width=120)
            no = gr.Button("No, it does not", variant="primary", elem_id="judge-no", min_width=120)
            back = gr.Button("Back to the last one", elem_id="judge-back", min_width=120)
        gr.Checkbox(True, label="Answer with the keys Y and N; B goes back", elem_id="judge-keys", interactive=True)
        with gr.Accordion("Your answers", open=False):
            keep = gr.Button("Make a file of my answers")
            own = download.component()
            confirm = gr.Textbox(label="To delete all your answers, type your code name", max_lines=1)
            delete = gr.Button("Delete my answers and my name", variant="stop")
            own_problem = notice.component(problem=True)
    with gr.Accordion("For the instructor", open=False):
        how = notice.component()
        with gr.Column(visible=False) as locked:
            password = gr.Textbox(label="Password", type="password", max_lines=1)
            show = gr.Button("Show the figures")
        instructors_problem = notice.component(problem=True)
        told = notice.component()
        systems, pairs, files = table.component(), table.component(), download.component()

    def opened() -> judge.Round:
        loading.libraries()
        return judge.opened(loading.name)

    def view(question: judge.Question | None, said: str):
        """All that changes when a rater comes, answers or goes: note, welcome, judging, story, item and the buttons."""
        if question is None:
            return notice.render(said), gr.update(visible=True), gr.update(visible=False), "", None, *[gr.skip()] * 3
        here = gr.update(interactive=question.item is not None)
        return (
            notice.render(said),
            gr.update(visible=False),
            gr.update(visible=True),
            judged_story.render(question),
            question.item,
            here,
            here,
            gr.update(interactive=not question.is_first),
        )

    screen = [note, welcome, judging, story, item, yes, no, back]

    def come(key: str):
        try:
            there = opened()
            if judge.known(there, key) is None:
                return view(
                    None,
                    f"{len(there.items)} stories wait for you, with {there.source}: {_minutes(there)} minutes or so.",
                )
            question = judge.ask(there, key)
        except ValueError as problem:  # a page without anything to judge says how to make it
            return notice.render(str(problem)), *[gr.skip()] * 7
        return view(question, f"Welcome back, {question.name}: you go on where you were.")

    def come_instructor():
        has_password = judge.password() is not None
        return notice.render("" if has_password else judge.HOW_TO_SET), gr.update(visible=has_password)

    def join(name: str, consents: bool):
        there = opened()
        key = judge.begin(there, name, consents)
        return key, *view(judge.ask(there, key), "")

    def say(fits: bool):
        def said(key: str, item: float | None):
            question = judge.answer(opened(), key, item, fits)
            return view(question, f"Your answer “{'yes' if fits else 'no'}” is kept.")

        return said

    def go_back(key: str, item: float | None):
        return view(judge.before(opened(), key, item), "")

    def own_sheet(key: str):
        return download.render(("Download my answers (CSV)", "my-answers.csv", judge.own_sheet(opened(), key)))

    def leave(key: str, name: str):
        judge.leave(opened(), key, name)
        return "", "", *view(None, "Your answers and your name are deleted.")

    def figures(password: str):
        found = judge.figures(opened(), password)
        return (
            notice.render(found.sentences),
            table.render("What people found fitting", judge.SYSTEM_COLUMNS, found.systems),
            table.render("How far two raters agree", judge.PAIR_COLUMNS, found.pairs),
            download.render(
                ("Download all answers (CSV)", "ratings.csv", found.ratings_csv),
                ("Download who wrote what (CSV)", "table5-key.csv", found.key_csv),
            ),
        )

    # Answers neither wait for the model nor for each other, and no full queue turns them away: SQLite keeps them apart.
    at_once = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    demo.load(come, key, screen, **at_once)
    demo.load(come_instructor, None, [how, locked], **at_once)

    def on(triggers, handler, inputs, outputs, problem=problem):
        gr.on(triggers, attempt(handler, len(outputs)), inputs, [problem, *outputs], **at_once)

    on([begin.click, name.submit], join, [name, consents], [key, *screen])
    on(yes.click, say(True), [key, item], screen)
    on(no.click, say(False), [key, item], screen)
    on(back.click, go_back, [key, item], screen)
    on(keep.click, own_sheet, key, [own], own_problem)
    on(delete.click, leave, [key, confirm], [key, confirm, *screen], own_problem)
    on([show.click, password.submit], figures, password, [told, systems, pairs, files], instructors_problem)
    _endpoints(opened)


def _minutes(there: judge.Round) -> int:
    return max(1, round(len(there.items) * SECONDS_A_STORY / 60))


def _endpoints(opened) -> None:
    """The same for programs: typed, and by the key that `judge_begin` gives; a code name opens nothing."""

    @answer
    def judge_begin(name: str, consents: bool) -> str:
        """Take part in the rating of stories.

        Args:
            name: a code name, not one's own.
            consents: whether one agrees that the answers are kept under it.

        Returns:
            The key to answer with. Nobody else must see it.
        """
        return judge.begin(opened(), name, consents)

    @answer
    def judge_next(key: str) -> dict:
        """The next story to judge: item (null when all are judged), before, sentence, after, done, total."""
        return _plain(judge.ask(opened(), key))

    @answer
    def judge_answer(key: str, item: int, fits: bool) -> dict:
        """Say whether the sentence of a story fits; when the next story comes back, the answer is on the disk."""
        return _plain(judge.answer(opened(), key, item, fits))

    @answer
    def judge_answers(key: str) -> str:
        """One's own answers as CSV: id, story, yes or no."""
        return judge.own_sheet(opened(), key).decode("utf-8-sig")

    @answer
    def judge_figures(password: str) -> dict:
        """For the instructor: shares by system with Wilson intervals, and Cohen's kappa by pairs of raters."""
        found = judge.figures(opened(), password)
        return {
            "systems": [dict(zip(judge.SYSTEM_COLUMNS, row, strict=True)) for row in found.systems],
            "pairs": [dict(zip(judge.PAIR_COLUMNS, row, strict=True)) for row in found.pairs],
            "sentences": found.sentences,
            "ratings_csv": found.ratings_csv.decode("utf-8-sig"),
        }

    for endpoint in (judge_begin, judge_next, judge_answer, judge_answers, judge_figures):
        gr.api(endpoint, api_name=endpoint.__name__, queue=False)


def _plain(question: judge.Question) -> dict:
    kinds = [piece.kind for piece in question.pieces]
    place = kinds.index("generated") if "generated" in kinds else 0
    before, sentence, after = (
        "".join(piece.text for piece in some)
        for some in (question.pieces[:place], question.pieces[place : place + 1], question.pieces[place + 1 :])
    )
    return {
        "item": question.item,
        "before": before,
        "sentence": sentence,
        "after": after,
        "done": question.done,
        "total": question.total,
    }
