//! PageRank: all iterations over a graph in one message, which the whole device handles.
//!
//! `cargo run --release -p example-page-rank -- [device [log2 of vertices [rmat|uniform]]] [--blocks N] [--threads N] [--long N] [--save FOLDER]`,
//! where the device is auto, cpu or cuda. With `--by links` (`--senders N`, `--aggregators N`, `--checkers N`, `--slots N`) each contribution of a
//! vertex to another is a message from kernel to kernel. What is saved `compare.py` ranks by other means.
//!
//! `[device] --file PATH` ranks a graph that is not generated but read, and prints its ten vertices of the highest rank. A file whose name
//! ends in `.mtx` is a Matrix Market file, a square matrix by coordinates; any other is a list of edges, `source target` a line. Two are
//! in `graphs`: `cargo run --release -p example-page-rank -- cpu --file examples/08-page-rank/graphs/small.mtx`.

mod files;
mod graph;
mod links;

use files::Format;
use graph::{Edges, Kind, Layout};
use ring_example_kernels::{PTX, PageRank, Ranked, Ranking, SLICE};
use ring_host::{Buffer, Element, KernelHandle, Kernels, LaunchConfig, Runtime, RuntimeConfig};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// Edges of each vertex, on average.
const OF_VERTEX: usize = 16;

/// Rows of more edges are each for a block.
const MOST: usize = 1024;

const DAMPING: f32 = 0.85;

const ITERATIONS: u32 = 20;

/// For so long a graph is ranked again and again, for the times.
const ENOUGH: Duration = Duration::from_millis(300);

// SAFETY: the PTX that was made of the crate whose kernel is launched.
const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let mut words = Vec::new();
    let (mut launch, mut folder) = (LaunchConfig::default().kernels(KERNELS), None);
    let mut channels =
        links::Channels { senders: 32, aggregators: 64, checkers: 16, slots: 1 << 13 };
    let (mut by_links, mut file, mut most) = (false, None, MOST);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--blocks" => launch = launch.blocks(value()?.parse()?),
            "--threads" => launch = launch.threads(value()?.parse()?),
            "--by" => match value()?.as_str() {
                "grid" => by_links = false,
                "links" => by_links = true,
                other => return Err(format!("'{other}' is neither grid nor links").into()),
            },
            "--senders" => channels.senders = value()?.parse()?,
            "--aggregators" => channels.aggregators = value()?.parse()?,
            "--checkers" => channels.checkers = value()?.parse()?,
            "--slots" => channels.slots = value()?.parse()?,
            "--long" => most = value()?.parse()?,
            "--save" => folder = Some(PathBuf::from(value()?)),
            "--file" => file = Some(PathBuf::from(value()?)),
            _ => words.push(arg),
        }
    }
    let mut words = words.iter().map(String::as_str);
    let device = words.next().unwrap_or("auto").parse()?;
    let (graph, from) = match &file {
        Some(path) => (read(path, words.next())?, path.display().to_string()),
        None => {
            let (graph, kind) = generate(words.next(), words.next())?;
            (graph, format!("{kind:?}"))
        }
    };
    println!("{} vertices, {} edges, {from}", graph.vertices(), graph.edges().len());
    let ranks = if by_links {
        let options = RuntimeConfig::default();
        let options =
            RuntimeConfig { device_bytes: options.device_bytes + channels.bytes(), ..options };
        let host = Runtime::open_with(device, options)?;
        links::run(&host, &launch, &graph, channels, ITERATIONS)?
    } else {
        by_grid(&Runtime::open(device)?, launch, (&graph, most), folder.as_deref())?
    };
    if let Some(path) = file {
        let first = Format::of(&path).first();
        highest(&ranks, 10).iter().for_each(|(v, rank)| println!("{:>10} {rank:.4e}", v + first));
    }
    Ok(())
}

/// The graph of a file, where none is to be generated.
fn read(path: &Path, word: Option<&str>) -> Done<Edges> {
    if let Some(word) = word {
        return Err(format!("'{word}' and --file: a graph is generated or read, not both").into());
    }
    Ok(files::read(path)?)
}

fn generate(log: Option<&str>, kind: Option<&str>) -> Done<(Edges, Kind)> {
    let kind = match kind {
        None | Some("rmat") => Kind::Rmat,
        Some("uniform") => Kind::Uniform,
        Some(other) => return Err(format!("'{other}' is neither rmat nor uniform").into()),
    };
    Ok((Edges::generate(kind, log.map_or(Ok(16), str::parse)?, OF_VERTEX, 1)?, kind))
}

/// The vertices of the highest ranks, with these, the highest first.
fn highest(ranks: &[f32], most: usize) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> = (0..).zip(ranks.iter().copied()).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(most);
    all
}

/// Ranks a graph's vertices, and prints how fast and how well.
fn by_grid(
    host: &Runtime,
    launch: LaunchConfig,
    (graph, most): (&Edges, usize),
    folder: Option<&Path>,
) -> Done<Vec<f32>> {
    let mut kernel = active(host, launch)?;
    let layout = Layout::new(graph, most, grid(&kernel));
    let (ranks, ranked, times) = rank(host, &mut kernel, &layout, (ITERATIONS, 0.0), ENOUGH)?;
    kernel.terminate(LONG)?;
    let error = error(&ranks, &graph.reference(DAMPING.into(), ranked.iterations));
    let [p50, p99] = [times[times.len() / 2], times[times.len() * 99 / 100]];
    println!(
        "{} iterations in {p50:.1?} (p99 {p99:.1?}, {} times); ranks are {error:.1e} off in all (L1)",
        ranked.iterations,
        times.len()
    );
    assert!(error < 1e-5, "the ranks are {error:.1e} off");
    if let Some(folder) = folder {
        layout.save(graph, folder, &ranks)?;
    }
    Ok(ranks)
}

/// By how much ranks are off in all: the L1 norm of the difference.
fn error(ranks: &[f32], right: &[f64]) -> f64 {
    ranks.iter().zip(right).map(|(rank, right)| (f64::from(*rank) - right).abs()).sum()
}

/// A buffer with these elements; one at least.
fn filled<T: Element>(host: &Runtime, elements: &[T]) -> Done<Buffer<T>> {
    let buffer = host.buffer(elements.len().max(1))?;
    buffer.upload(0, elements, LONG)?;
    Ok(buffer)
}

/// The kernel, ready for messages.
fn active(host: &Runtime, launch: LaunchConfig) -> Done<KernelHandle<PageRank>> {
    let mut kernel = host.launch(launch)?;
    kernel.activate(LONG)?;
    Ok(kernel)
}

/// The blocks of a kernel, and the warps of each.
fn grid(kernel: &KernelHandle<PageRank>) -> (usize, usize) {
    (kernel.blocks() as usize, kernel.threads() as usize / SLICE)
}

/// The ranks of a graph's vertices; how many iterations that took; and how long it was from each message to its answer, in rising
/// order: a first one, and more until they have taken `enough`.
fn rank(
    host: &Runtime,
    kernel: &mut KernelHandle<PageRank>,
    layout: &Layout,
    (iterations, tolerance): (u32, f32),
    enough: Duration,
) -> Done<(Vec<f32>, Ranked, Vec<Duration>)> {
    let n = layout.order.len();
    let slices = filled(host, &layout.slices)?;
    let columns = filled(host, &layout.columns)?;
    let parts = filled(host, &layout.parts)?;
    let ranks = host.buffer::<f32>(n)?;
    let contributions = || host.buffer::<f32>(n + 1);
    let contributions = [contributions()?, contributions()?];

    let shares = filled(host, &layout.shares)?;
    let ranking = Ranking {
        slices: slices.reference(),
        columns: columns.reference(),
        shares: shares.reference(),
        parts: parts.reference(),
        ranks: ranks.reference(),
        contributions: [contributions[0].reference(), contributions[1].reference()],
        vertices: n as u32,
        iterations,
        damping: DAMPING,
        tolerance,
    };
    let (mut ranked, mut times) = (Ranked::default(), Vec::new());
    let first = Instant::now();
    while times.is_empty() || first.elapsed() < enough {
        let begun = Instant::now();
        kernel.send(ranking, LONG)?;
        ranked = kernel.recv(LONG)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    if ranked.iterations == 0 {
        return Err("the kernel refused the buffers".into());
    }
    let mut found = vec![0.0; n];
    ranks.download(0, &mut found, LONG)?;
    let mut by_vertex = vec![0.0; n];
    layout.order.iter().zip(found).for_each(|(v, rank)| by_vertex[*v as usize] = rank);
    Ok((by_vertex, ranked, times))
}

#[cfg(test)]
const ONCE: Duration = Duration::ZERO;

#[test]
fn ranks_are_those_of_the_reference_on_every_device() {
    let kernels = ring_tests::kernels::of_examples::<PageRank>();
    let launch = LaunchConfig::default().kernels(kernels).blocks(3);
    ring_tests::on_each_device(|host| {
        let mut kernel = active(host, launch.clone()).unwrap();
        for kind in [Kind::Uniform, Kind::Rmat] {
            for (log, most) in [(4, 10), (10, 8), (10, 24), (10, 200), (12, MOST)] {
                let graph = Edges::generate(kind, log, OF_VERTEX, 5).unwrap();
                let layout = Layout::new(&graph, most, grid(&kernel));
                let (ranks, ranked, _) =
                    rank(host, &mut kernel, &layout, (ITERATIONS, 0.0), ONCE).unwrap();
                // A small graph's ranks may change no more, in single precision, before that.
                assert!((1..=ITERATIONS).contains(&ranked.iterations), "{ranked:?}");
                let error = error(&ranks, &graph.reference(DAMPING.into(), ranked.iterations));
                assert!(error < 1e-5, "{kind:?} of 2^{log}: {error:.1e}");
            }
        }
    });
}

#[test]
fn it_stops_when_ranks_change_no_more() {
    let kernels = ring_tests::kernels::of_examples::<PageRank>();
    let launch = LaunchConfig::default().kernels(kernels).blocks(2);
    ring_tests::on_each_device(|host| {
        let mut kernel = active(host, launch.clone()).unwrap();
        let graph = Edges::generate(Kind::Rmat, 8, OF_VERTEX, 2).unwrap();
        let layout = Layout::new(&graph, MOST, grid(&kernel));
        let (_, ranked, _) = rank(host, &mut kernel, &layout, (1000, 1e-4), ONCE).unwrap();
        assert!(ranked.iterations < 100 && ranked.change <= 1e-4, "{ranked:?}");
    });
}

#[test]
fn what_is_no_graph_is_answered_and_harms_nothing() {
    let kernels = ring_tests::kernels::of_examples::<PageRank>();
    let launch = LaunchConfig::default().kernels(kernels).blocks(2);
    ring_tests::on_each_device(|host| {
        let mut kernel = active(host, launch.clone()).unwrap();
        let graph = Edges::generate(Kind::Rmat, 8, OF_VERTEX, 2).unwrap();
        let (blocks, warps) = grid(&kernel);
        let layout = Layout::new(&graph, 24, (blocks, warps));
        let mut rank = |layout: &Layout| rank(host, &mut kernel, layout, (5, 0.0), ONCE);
        // Sources and places that are beyond the buffers contribute nothing.
        let mut beyond = layout.clone();
        beyond.columns.fill(u32::MAX - 3);
        beyond.slices[..4].fill(u32::MAX);
        beyond.shares = vec![0, u32::MAX - 1, u32::MAX, 3, 5];
        let (ranks, ranked, _) = rank(&beyond).unwrap();
        assert!(ranked.iterations > 0 && ranks.iter().all(|rank| rank.is_finite()), "{ranked:?}");
        // What is not a number stays none, and no iteration is the last one for that.
        let mut unknown = layout.clone();
        unknown.parts[0] = f32::NAN;
        let (ranks, ranked, _) = rank(&unknown).unwrap();
        assert!(ranked.iterations == 5 && ranked.change.is_nan(), "{ranked:?}");
        assert!(ranks.iter().any(|rank| rank.is_nan()));
        // What is for another grid is refused.
        let error = rank(&Layout::new(&graph, 24, (blocks + 1, warps))).unwrap_err();
        assert_eq!(error.to_string(), "the kernel refused the buffers");
    });
}

#[test]
fn a_graph_without_edges_has_even_ranks() {
    let kernels = ring_tests::kernels::of_examples::<PageRank>();
    let launch = LaunchConfig::default().kernels(kernels).blocks(2);
    ring_tests::on_each_device(|host| {
        let mut kernel = active(host, launch.clone()).unwrap();
        let layout = Layout::new(&Edges::new(100, Vec::new()).unwrap(), MOST, grid(&kernel));
        let (ranks, ..) = rank(host, &mut kernel, &layout, (3, 0.0), ONCE).unwrap();
        assert!(ranks.iter().all(|rank| (rank - 0.01).abs() < 1e-7), "{ranks:?}");
    });
}

#[test]
fn a_graph_is_generated_or_read_not_both() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("graphs/small.txt");
    assert_eq!(read(&path, None).unwrap().vertices(), 12);
    let error = read(&path, Some("16")).unwrap_err().to_string();
    assert!(error.starts_with("'16' and --file"), "{error}");
    assert_eq!(generate(Some("4"), Some("uniform")).unwrap().0.vertices(), 16);
    assert!(generate(Some("4"), Some("grid")).is_err());
}

#[test]
fn the_highest_ranks_come_first() {
    assert_eq!(highest(&[0.1, 0.4, 0.2, 0.4], 3), [(1, 0.4), (3, 0.4), (2, 0.2)]);
    assert_eq!(highest(&[0.5], 10), [(0, 0.5)]);
}
