"""What several pages are made of: each `component()` makes a place on a page, and `render(…)` what is put there.

Two traps of gradio's are the reason for this form. It evaluates a `gr.HTML` template as a JavaScript template literal
*after* Handlebars has filled it in, and Handlebars leaves `${…}` alone: a token of that form would run as code. So
everything is rendered here in Python, through `html.escape`, and the template is nothing but the value. And a subclass
of a component makes gradio write a `.pyi` file beside its source on import. So there are none.
"""
