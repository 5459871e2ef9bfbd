"""Answers to the check of LoRA."""

from magnet_lab.course.answers import right, wrong

# lora(x, weight, a, b, alpha)


@right("lora")
def lora_in_two_steps(x, weight, a, b, alpha):
    low = x @ a.T
    return x @ weight.T + (alpha / a.shape[0]) * (low @ b.T)


@right("lora")
def lora_merged(x, weight, a, b, alpha):
    merged = weight + alpha / b.shape[1] * (b @ a)
    return (merged @ x.T).T


@wrong("lora", "the factor α / r is missing")
def lora_unscaled(x, weight, a, b, alpha):
    return x @ (weight + b @ a).T


@wrong("lora", "multiplied by α alone")
def lora_times_alpha(x, weight, a, b, alpha):
    return x @ weight.T + alpha * x @ a.T @ b.T


@wrong("lora", "upside down")
def lora_r_over_alpha(x, weight, a, b, alpha):
    return x @ weight.T + len(a) / alpha * x @ a.T @ b.T


@wrong("lora", "the frozen matrix is missing")
def lora_alone(x, weight, a, b, alpha):
    return alpha / len(a) * x @ a.T @ b.T


@wrong("lora", "applied to the frozen layer as well")
def lora_scales_all(x, weight, a, b, alpha):
    return (x @ weight.T + x @ a.T @ b.T) * alpha / len(a)


@wrong("lora", "r is taken from the wrong dimension")
def lora_wrong_rank(x, weight, a, b, alpha):
    return x @ weight.T + alpha / a.shape[-1] * (x @ a.T @ b.T)


@wrong("lora", "the new weight matrix is returned")
def lora_weight(x, weight, a, b, alpha):
    return weight + alpha / len(a) * (b @ a)


@wrong("lora", "its line `return x @ weight.T + alpha / len(a) * (x @ a @ b)`")
def lora_not_transposed(x, weight, a, b, alpha):
    return x @ weight.T + alpha / len(a) * (x @ a @ b)
