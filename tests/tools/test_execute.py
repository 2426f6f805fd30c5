"""A notebook is run again when its outputs could differ, and only then."""

import json

import build_book
import build_chapter
import execute
import fingerprint
import nbformat
import pytest
import seed_cache
import vendor
from strip import strip


def write(path, code="1 + 1", prose="A sentence."):
    cells = [
        {"cell_type": "markdown", "source": [prose], "metadata": {}},
        {"cell_type": "code", "source": [code], "metadata": {}, "outputs": []},
    ]
    path.write_text(json.dumps({"cells": cells, "metadata": {}}))
    return path


def test_prose_does_not_count_but_code_does(tmp_path):
    first = fingerprint.of_notebook(write(tmp_path / "a.ipynb"), "code")
    path = write(tmp_path / "a.ipynb", prose="Another.")
    assert fingerprint.of_notebook(path, "code") == first
    assert fingerprint.of_notebook(path, "other package") != first
    path = write(tmp_path / "a.ipynb", code="1 + 2")
    assert fingerprint.of_notebook(path, "code") != first


def test_metadata_of_code_counts_and_that_of_prose_does_not(tmp_path):
    path = write(tmp_path / "a.ipynb")
    notebook = json.loads(path.read_text())
    first = fingerprint.of_notebook(path, "code")
    prose, code = notebook["cells"]
    prose["metadata"] = {"tags": ["remark"]}
    path.write_text(json.dumps(notebook))
    assert fingerprint.of_notebook(path, "code") == first
    code["metadata"] = {"tags": ["raises-exception"]}
    path.write_text(json.dumps(notebook))
    assert fingerprint.of_notebook(path, "code") != first


OUTPUTS_DEPEND_ON = (
    *("flashlib/masks.py", "flashlib/model/baker/config.json"),
    *("book/measurements/a.json", "pyproject.toml", "constraints.txt"),
)
PAGES_DEPEND_ON = (
    *("_config.yml", "_toc.yml", "_ext/a.py", "book/assets/site/a.css"),
    *("book/references.bib", "flashlib/masks.py", ".vendor/stamp"),
    *("constraints.txt", "tools/build_book.py"),
)
DEPENDING = {"CODE": OUTPUTS_DEPEND_ON, "FRAME": PAGES_DEPEND_ON}


@pytest.mark.parametrize(
    ("names", "changed"),
    [(names, file) for names, files in DEPENDING.items() for file in files],
)
def test_a_change_of_what_outputs_and_pages_depend_on_is_seen(
    tmp_path, monkeypatch, names, changed
):
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    for file in {*OUTPUTS_DEPEND_ON, *PAGES_DEPEND_ON}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("before")
    paths = fingerprint.CODE if names == "CODE" else build_book.FRAME
    first = fingerprint.of_files(*paths)
    assert fingerprint.of_files(*paths) == first
    (tmp_path / changed).write_text("after")
    assert fingerprint.of_files(*paths) != first


def test_what_editors_and_python_leave_behind_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "a.ipynb").write_text("here")
    first = fingerprint.of_files("notebooks")
    for folder in (".ipynb_checkpoints", "__pycache__"):
        (tmp_path / "notebooks" / folder).mkdir()
        (tmp_path / "notebooks" / folder / "a").write_text("left")
    assert fingerprint.of_files("notebooks") == first
    (tmp_path / "notebooks" / "b.ipynb").write_text("here")
    assert fingerprint.of_files("notebooks") != first


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Point the tool at a project of two notebooks, one of them already run."""
    source, executed = tmp_path / "notebooks", tmp_path / ".executed"
    source.mkdir()
    executed.mkdir()
    monkeypatch.setattr(execute, "SOURCE", source)
    monkeypatch.setattr(execute, "EXECUTED", executed)
    monkeypatch.setattr(execute, "STAMPS", executed / "stamps.json")
    write(source / "01_done.ipynb")
    write(source / "02_new.ipynb")
    key = execute.find_stale([])["01_done"]
    write(executed / "01_done.ipynb")
    execute.STAMPS.write_text(json.dumps({"01_done": key}))
    return source


def test_only_what_changed_is_stale(project):
    assert list(execute.find_stale([])) == ["02_new"]
    write(project / "01_done.ipynb", code="2 + 2")
    assert list(execute.find_stale([])) == ["01_done", "02_new"]
    assert list(execute.find_stale(["01_done"])) == ["01_done"]


def test_a_notebook_whose_copy_is_gone_is_stale(project):
    (execute.EXECUTED / "01_done.ipynb").unlink()
    assert list(execute.find_stale([])) == ["01_done", "02_new"]


def test_failure_is_named_and_not_stamped(project, monkeypatch):
    monkeypatch.setattr(execute, "run", lambda names: set())
    with pytest.raises(SystemExit, match="02_new failed"):
        execute.main()
    assert list(execute.read_stamps()) == ["01_done"]
    write(execute.EXECUTED / "02_new.ipynb")
    monkeypatch.setattr(execute, "run", set)
    assert execute.main() == ["02_new"]
    assert execute.main() == []


def test_failed_notebooks_are_read_from_the_report(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase name=".executed/01_a.ipynb"/>'
        '<testcase name=".executed/02_b.ipynb"><failure/></testcase>'
        '<testcase name=".executed/03_c.ipynb"><error/></testcase>'
        "</testsuite></testsuites>"
    )
    assert list(execute.failed_in(report)) == ["02_b", "03_c"]


def test_chapter_is_found_by_its_number(project):
    assert build_chapter.find("02") == "02_new"
    with pytest.raises(SystemExit, match="expected the start of one of"):
        build_chapter.find("0")


def executed_notebook():
    cell = nbformat.v4.new_code_cell("1 + 1", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", text="2")]
    cell.metadata["execution"] = {
        "iopub.execute_input": "2026-01-01T00:00:01.000000Z",
        "shell.execute_reply": "2026-01-01T00:00:03.500000Z",
    }
    return nbformat.v4.new_notebook(cells=[cell])


def test_seconds_are_taken_and_the_marks_removed():
    notebook = executed_notebook()
    assert seed_cache.take_timing(notebook) == 2.5
    assert notebook.cells[0].metadata == {}


def test_strip_removes_what_a_run_leaves():
    notebook = executed_notebook()
    identity = notebook.cells[0].id
    (cell,) = strip(notebook).cells
    assert (cell.outputs, cell.execution_count, cell.metadata) == ([], None, {})
    assert cell.id == identity


def test_strip_removes_the_states_of_widgets_and_keeps_the_rest():
    notebook = executed_notebook()
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook.metadata["kernelspec"] = kernel
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}
    metadata = strip(notebook).metadata
    assert metadata == {"kernelspec": kernel, "language_info": {"name": "python"}}


def test_vendored_files_are_those_named():
    keep = {"es5/fonts/": "site/fonts/", "main.js": "site/main.js"}
    assert vendor.target_of("package/main.js", keep) == "site/main.js"
    assert vendor.target_of("package/es5/fonts/a.woff", keep) == "site/fonts/a.woff"
    assert vendor.target_of("package/es5/fonts/a.ttf", keep) is None
    assert vendor.target_of("package/README.md", keep) is None


def test_the_longest_notebook_begins_first(monkeypatch, tmp_path):
    assert (execute.SOURCE / f"{execute.LONGEST}.ipynb").exists()
    commands = []
    monkeypatch.setattr(execute, "EXECUTED", tmp_path)
    monkeypatch.setattr(execute, "failed_in", lambda report: [])
    monkeypatch.setattr(
        execute.subprocess, "run", lambda command, **how: commands.append(command)
    )
    names = ["02_the_megabyte", execute.LONGEST, "03_the_float_cliff"]
    assert execute.run(names) == set(names)
    order = [part[10:-6] for part in commands[-1] if part.endswith(".ipynb")]
    assert order == [execute.LONGEST, "02_the_megabyte", "03_the_float_cliff"]
