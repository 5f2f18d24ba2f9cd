"""Hook of mkdocs: pages that code or a file at the root already holds, made while the site is built, never kept in git.

README, CONTRIBUTING and CHANGELOG become pages, every rule's docstring becomes `rules/CODE.md`. On every page the name
of a document in text becomes a link, which `--strict` then checks.
"""

import posixpath
import re
from pathlib import Path

from facts import filled
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from stepline.cli.explain import page_of, sections
from stepline.findings.outcome import Rule
from stepline.findings.registry import RULES
from stepline.findings.thresholds import thresholds_of

ROOT = Path(__file__).parents[2]
AT_ROOT = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
FAMILIES = {
    "L": "Load and measurement",
    "S": "Scheduler",
    "H": "Host",
    "K": "Kernels",
    "C": "Communication",
    "P": "Hardware",
}
_NAMES = r"docs/([\w-]+)\.md|README\.md|CONTRIBUTING\.md|CHANGELOG\.md"
_DOCUMENT = re.compile(rf"`?(?<!\]\()(?<![\w/])({_NAMES})`?(?!\w)")
_THREADS = re.compile(r"\b([\w.-]+/[\w.-]+) (issue|pull request)s? (\d+)")
_RULE_ROW = re.compile(r"(?m)^\| ([A-Z]\d{3}) ([\w-]+) \|")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every rule into the section of causes, in the order of the catalogue."""
    causes = next(item["Causes"] for item in config.nav or [] if "Causes" in item)
    causes += [f"rules/{rule.code}.md" for rule in RULES]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file in docs/ holds."""
    pages = {page: (ROOT / source).read_text() for page, source in AT_ROOT.items()}
    pages |= {f"rules/{rule.code}.md": _rule_page(rule) for rule in RULES}
    pages |= {"rules/index.md": _rule_list()}
    for uri, content in pages.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Names of documents and rules as links, outside of code blocks."""
    here = posixpath.dirname(page.file.src_uri)
    markdown = _RULE_ROW.sub(
        lambda row: f"| [{row[1]} {row[2]}]({_to(f'rules/{row[1]}.md', here)}) |", filled(markdown)
    )
    parts = re.split(r"(?ms)(^```.*?^```$)", markdown)
    return "".join(part if index % 2 else _linked(part, here) for index, part in enumerate(parts))


def _linked(text: str, here: str) -> str:
    lines = (
        line if line.startswith("    ") else _DOCUMENT.sub(lambda name: _link(name, here), line)
        for line in text.split("\n")
    )
    return "\n".join(lines)


def _link(name: re.Match[str], here: str) -> str:
    names = {source: page for page, source in AT_ROOT.items()}
    return f"[{name[1]}]({_to(names.get(name[1]) or f'{name[2]}.md', here)})"


def _to(page: str, here: str) -> str:
    return posixpath.relpath(page, here or ".")


def _rule_page(rule: Rule) -> str:
    parts = [f"# {rule.code} {rule.codename}"]
    for heading, text in sections(page_of(rule)).items():
        parts += [f"## {heading}", _THREADS.sub(_thread, text)]
    rows = [
        f"| {one.name} | {one.value:.6g} {one.unit} | {one.why} | {one.source} | `{one.where}.py` |"
        for one in thresholds_of(rule)
    ]
    if rows:
        parts += [
            "## Thresholds",
            "\n".join(["| name | value | why | source | where |", "|---|---|---|---|---|", *rows]),
        ]
    head, row = _evidence(rule)
    parts += ["## Which evidence allows which answer", f"{head}\n|{'---|' * (head.count('|') - 1)}\n{row}"]
    parts.append(f"Since {rule.since}. In a terminal: `stepline explain {rule.code}`.")
    return "\n\n".join(parts) + "\n"


def _thread(found: re.Match[str]) -> str:
    kind = "issues" if found[2] == "issue" else "pull"
    return f"[{found[0]}](https://github.com/{found[1]}/{kind}/{found[3]})"


def _evidence(rule: Rule) -> tuple[str, str]:
    """The rule's row of docs/identifiability.md under its head, without the rule's own name."""
    rows = [line.split(" | ", 1) for line in (ROOT / "docs" / "identifiability.md").read_text().splitlines()]
    head = next(row[1] for row in rows if row[0] == "| rule")
    return f"| {head}", "| " + next(row[1] for row in rows if row[0] == f"| {rule.code} {rule.codename}")


def _rule_list() -> str:
    told = (
        "One page a rule. Which evidence allows which answer: docs/identifiability.md. "
        "How often the answers are right: docs/accuracy.md."
    )
    parts = ["# Causes", told]
    for letter, family in FAMILIES.items():
        rules = [rule for rule in RULES if rule.code.startswith(letter)]
        if not rules:
            continue
        rows = [f"| {rule.code} {rule.codename} | {_meaning(rule)} |" for rule in rules]
        parts.append("\n".join([f"## {family}", "", "| rule | what it means |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _meaning(rule: Rule) -> str:
    notes = "" if rule.proven else " (makes notes only)"
    return sections(page_of(rule))["What it means"].replace("|", "\\|") + notes
