"""The comparison with other systems, and its way into the documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from bench.benches import BENCHES
from bench.findings import Findings, Pace, median_row, read_results
from bench.job import ATLEAST, ATMOST
from bench.latency import PERCENTILES, Latency
from bench.peers.comparison import GOALS, Comparison, read_comparison, run_in_turn
from bench.peers.peer import Peer, PeerUnavailableError
from bench.peers.plots import NAMES, Plot, plots_of
from bench.peers.publication import BEGIN, END, PEER_RESULTS, RESULTS, digest, publish, stale, with_section
from bench.peers.report import details_of, summary_of
from bench.records import BenchError
from bench.scaling import Scaling
from bench.stored_tables import filled, marks_of, templates

from heron_testing_servers.install import ServerNotInstalledError

ROOT = Path(__file__).resolve().parents[1]
MACHINE = {"processor": "abacus", "cores": 10, "system": "wood", "python": "CPython 0"}


def sample() -> Comparison:
    """Three rounds; Spark was not available."""
    rates = {
        "rows": [8e6, 10e6, 9e6],
        "rows, at least once": [3e6, 3e6, 3e6],
        "columns": [80e6, 100e6, 90e6],
        "columns, at least once": [50e6, 60e6, 70e6],
        "flink": [40e6, 200e6, 90e6],
        "storm, acked": [1e6, 1e6, 1e6],
        "bytewax": [1e6, 1e6, 1e6],
        "pathway": [0.5e6, 0.5e6, 0.5e6],
    }
    versions = dict.fromkeys(("flink", "storm, acked", "bytewax", "pathway"), "7.1")
    missing = {"spark, counted in python": "`pip install` ended with 1: a | in /some/path"}
    return Comparison("2001-02-03", MACHINE, rates, versions, missing)


def all_findings() -> Findings:
    """Every row and ratio that the plots use."""
    found = Findings()
    for bench in BENCHES:
        if isinstance(bench, Latency):
            for mode in (ATMOST, ATLEAST):
                found.rows.extend(median_row(bench.name, f"p{each:g}", "ms", [each], mode) for each in PERCENTILES)
        if isinstance(bench, Scaling):
            for subject in bench.jobs:
                found.rows.append(median_row(bench.name, subject, "tuples/s", [1.0]))
                found.ratios[f"{bench.key}.{subject.replace(' ', '_')}"] = 1.0
    return found


def test_the_documents_have_the_figures_of_the_stored_results() -> None:
    """If this fails, run `./dev bench -- report`; nobody types these figures or changes the plots."""
    assert list(stale(ROOT)) == []


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Documents with marks, and results of our benches; nothing was compared yet."""
    for path in ("README.md", "docs/performance.md"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(f"before\n\n{BEGIN}\n{END}\n\nafter\n", encoding="utf-8")
    with (tmp_path / "docs/performance.md").open("a", encoding="utf-8") as page:
        page.writelines(f"\n{line}\n" for name in templates() for line in marks_of(name))
    (tmp_path / RESULTS).parent.mkdir(parents=True)
    store(tmp_path, Findings())
    return tmp_path


def store(root: Path, findings: Findings) -> None:
    rows = [asdict(row) for row in findings.rows]
    (root / RESULTS).write_text(json.dumps({"machine": MACHINE, "rows": rows, "ratios": findings.ratios}))


def draw(plots: Sequence[Plot], folder: Path) -> None:
    """Write what a picture always contains, without Matplotlib."""
    for plot in plots:
        (folder / f"{plot.name}.svg").write_text(f"<svg>{digest(plot)}</svg>")


def test_without_results_the_sections_say_so_and_there_are_no_plots(repository: Path) -> None:
    """A link to a plot that does not exist would be broken."""
    said: list[str] = []
    publish(repository, said.append, draw)
    assert (repository / "README.md").read_text() == f"before\n\n{BEGIN}\n\nNot measured yet.\n\n{END}\n\nafter\n"
    assert "images/" not in (repository / "docs/performance.md").read_text()
    assert any("ScalingTasks" in line for line in said)
    assert list(stale(repository)) == []


def test_results_reach_both_documents_and_all_plots(repository: Path) -> None:
    """The README has ratios only; the other document has everything."""
    sample().write(repository / PEER_RESULTS)
    store(repository, all_findings())
    images = [f"docs/images/{name}.svg" for name in NAMES]
    assert list(stale(repository)) == ["README.md", "docs/performance.md", *images]
    publish(repository, lambda _: None, draw)
    assert list(stale(repository)) == []
    readme, details = ((repository / each).read_text() for each in ("README.md", "docs/performance.md"))
    assert "million" not in readme
    assert "abacus, 10 cores" in readme
    assert all(f"(images/{name}.svg)" in details for name in NAMES)
    assert "| flink | 7.1 | 90 | 178% | 3 |" in details


def test_a_typed_figure_and_an_old_plot_are_found(repository: Path) -> None:
    """New results make a plot old, and results that are gone make it wrong."""
    sample().write(repository / PEER_RESULTS)
    publish(repository, lambda _: None, draw)
    readme = repository / "README.md"
    readme.write_text(readme.read_text().replace("| 1.00 |", "| 9.00 |"))
    faster = sample()
    faster.rates["rows"] = [rate + 1e6 for rate in faster.rates["rows"]]
    assert list(stale(repository)) == ["README.md"]
    faster.write(repository / PEER_RESULTS)
    assert "docs/images/throughput.svg" in stale(repository)
    (repository / PEER_RESULTS).unlink()
    publish(repository, lambda _: None, draw)
    assert list((repository / "docs/images").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["", BEGIN, END, f"{END}{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}", f"{BEGIN}{BEGIN}{END}", f"{BEGIN}{END}{END}"],
)
def test_a_document_without_its_marks_is_refused(repository: Path, text: str) -> None:
    """Without this error the section would be lost, or be written twice."""
    (repository / "docs/performance.md").write_text(text)
    with pytest.raises(BenchError, match=r"docs/performance\.md: the marks"):
        publish(repository, lambda _: None, draw)
    assert "Not measured" not in (repository / "README.md").read_text()


def test_a_section_that_is_written_again_replaces_the_old_one() -> None:
    """The text around it stays."""
    once = with_section(f"a\n{BEGIN}\nold\n{END}\nb", ["new"], "x.md")
    assert once == f"a\n{BEGIN}\n\nnew\n\n{END}\nb"
    assert with_section(once, ["new"], "x.md") == once


def test_a_table_shows_stored_figures_and_marks_those_that_miss_their_target() -> None:
    """A rate is in millions; a figure that was not measured leaves no gap."""
    rows = [median_row("A", "x: y, z", "ms", [12.345]), median_row("A", "heron", "tuples/s", [2.5e6], ATLEAST)]
    found = Findings(rows, {"a.vs_b": 0.5})
    template = "{a.vs_b ≥ 0.5} {a.vs_b ≥ 0.51} {A / atmost / x: y, z ≤ 5} ms {A / atleast / heron} {c ≤ 1}"
    assert filled(template, found) == "0.5 **0.5** **12.3** ms 2.5 not measured"


def test_a_name_of_several_rows_is_refused() -> None:
    """The first of them would be a guess."""
    found = Findings([median_row("A", "x", unit, [1.0]) for unit in ("s", "ms")])
    with pytest.raises(BenchError, match="have 2 rows of this name, in ms, s"):
        filled("{A / atmost / x}", found)


def test_each_figure_of_the_tables_is_stored() -> None:
    """A bench or subject that was renamed would leave a hole in its table."""
    _, findings = read_results(ROOT / RESULTS)
    for name, template in templates().items():
        assert "not measured" not in filled(template, findings), name


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    """The speed of a machine drifts, so rates of different rounds are not compared."""
    lines = list(details_of(sample()))
    assert f"| {GOALS[0].what} | 1.00 | 0.50 to 2.00 | ≥ 1 | ≥ 3 |" in lines
    assert f"| {GOALS[1].what} | 0.78, target missed | 0.30 to 1.25 | ≥ 0.9 | ≥ 2.5 |" in lines


def test_a_system_that_was_not_available_is_named_without_its_reason() -> None:
    """Reasons quote commands with paths. The fastest of the others must not pass for the fastest of all."""
    text = "\n".join(details_of(sample()))
    assert "| spark, counted in python |  | not measured | | |" in text
    assert "(bytewax; not measured: spark, counted in python)" in text
    assert "/some/path" not in text


@pytest.mark.parametrize(("rounds", "said"), [(1, "One round, in which each"), (3, "Medians of 3 rounds; in each")])
def test_the_number_of_rounds_is_said_in_words_that_fit(rounds: int, said: str) -> None:
    """One round has no median."""
    found = replace(sample(), rates={name: rates[:rounds] for name, rates in sample().rates.items()})
    text = " ".join(summary_of(found))
    assert said in text
    assert "rounds" not in text or rounds > 1


def test_a_comparison_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The report may be written long after the run."""
    sample().write(tmp_path / "peers.json")
    assert read_comparison(tmp_path / "peers.json") == sample()
    assert read_comparison(tmp_path / "absent.json") is None


def test_a_system_that_fails_does_not_stop_the_others() -> None:
    """It is not asked again, its reason is kept, and it has no rates, even if an earlier round had one."""
    asked: list[str] = []

    def run(name: str, ends: int) -> float:
        asked.append(name)
        if asked.count(name) == ends:
            msg = f"{name}: no network"
            raise (PeerUnavailableError if name == "a" else BenchError)(msg)
        return 1e6

    found, said = Comparison("2001-02-03", MACHINE, versions=dict.fromkeys("abc", "7.1")), list[str]()
    subjects = {name: lambda _, name=name, ends=ends: run(name, ends) for name, ends in (("a", 1), ("b", 2), ("c", 0))}
    run_in_turn(subjects, Pace(pairs=3), found, said.append)
    assert found.rates == {"c": [1e6, 1e6, 1e6]}
    assert found.missing == {"a": "a: no network", "b": "b: no network"}
    assert asked == ["a", "b", "c", "b", "c", "c"]
    assert "a: left out: a: no network" in said


def test_a_failure_of_heron_itself_ends_the_comparison() -> None:
    """Its wrong counts must not look like a system that is missing."""

    def fail(_: Pace) -> float:
        msg = "counted wrongly"
        raise BenchError(msg)

    with pytest.raises(BenchError, match="counted wrongly"):
        run_in_turn({"rows": fail}, Pace(), Comparison("2001-02-03", MACHINE), lambda _: None)


def test_a_program_that_is_not_there_is_an_error_of_that_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example javac, where only a runtime is installed."""
    monkeypatch.setenv("HERON_TESTS_CACHE", str(tmp_path))
    peer = Peer("abacus", "1.2", lambda _: None, lambda *_: [str(tmp_path / "no-program")])
    with pytest.raises(BenchError, match=r"abacus cannot be run: .*no-program"):
        peer.run(Pace())


def test_a_failed_installation_makes_a_system_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the system, its version and the reason."""
    monkeypatch.setenv("HERON_TESTS_CACHE", str(tmp_path))

    def fail(_: Path) -> None:
        msg = "no network"
        raise ServerNotInstalledError(msg)

    with pytest.raises(PeerUnavailableError, match=r"abacus 1\.2: no network"):
        Peer("abacus", "1.2", fail, lambda *_: []).run(Pace())
    assert not (tmp_path / "peer-abacus-1.2").exists()


def test_plots_leave_out_what_was_not_measured() -> None:
    """A missing value is a gap in its line, and a plot without values does not exist."""
    rows = [row for row in all_findings().rows if row.bench == "LowThroughput" and row.subject != "p90"]
    plots, lacking = plots_of(None, MACHINE, Findings(rows, {"scaling.tasks.2_tasks": 1.0}))
    assert [plot.name for plot in plots] == ["latency", "scaling"]
    assert "some results of LowThroughput, at most once" in lacking
    assert {"Latency10k, at least once", "some results of ScalingTasks", "ScalingContainers"} < set(lacking)
    (at_most_once, _) = json.loads(json.dumps(plots[0].data))["panels"]
    assert at_most_once["lines"] == [{"name": "1,000 tuples/s", "values": [50.0, None, 99.0, 99.9]}]


def test_complete_results_lack_nothing() -> None:
    """Otherwise the command would ask for a bench that does not exist."""
    plots, lacking = plots_of(sample(), MACHINE, all_findings())
    assert [plot.name for plot in plots] == list(NAMES)
    assert lacking == []
