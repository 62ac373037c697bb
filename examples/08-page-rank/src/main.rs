//! PageRank: all iterations over a graph in one message, which the whole device handles.
//!
//! `cargo run --release -p ring-page-rank -- [device [log2 of vertices [rmat|uniform]]] [--blocks N] [--threads N] [--long N] [--save FOLDER]`,
//! where the device is auto, cpu or cuda, or two such as `cuda:0,cuda:1`, which then rank it together. With `--by links` (`--senders N`, `--aggregators N`, `--checkers N`, `--slots N`) each contribution of a
//! vertex to another is a message from kernel to kernel. What is saved `compare.py` ranks by other means.
//!
//! `[device] --file PATH` ranks a graph that is not generated but read, and prints its ten vertices of the highest rank. A file whose name
//! ends in `.mtx` is a Matrix Market file, a square matrix by coordinates; any other is a list of edges, `source target` a line. Two are
//! in `graphs`: `cargo run --release -p ring-page-rank -- cpu --file examples/08-page-rank/graphs/small.mtx`.

use ring_host::{Device, Devices, LaunchConfig, Runtime, RuntimeConfig};
use ring_page_rank::files::{self, Format};
use ring_page_rank::graph::{Edges, Kind, Layout};
use ring_page_rank::grid::{MOST, active, grid, rank};
use ring_page_rank::links::{self, Channels};
use ring_page_rank::two;
use ring_page_rank::{DAMPING, Done, ITERATIONS, KERNELS, LONG, OF_VERTEX, check, highest};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For so long a graph is ranked again and again, for the times.
const ENOUGH: Duration = Duration::from_millis(300);

fn main() -> Done<()> {
    let mut words = Vec::new();
    let (mut launch, mut folder) = (LaunchConfig::default().kernels(KERNELS), None);
    let mut channels = Channels::default();
    let (mut links, mut file, mut most) = (false, None, MOST);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--blocks" => launch = launch.blocks(value()?.parse()?),
            "--threads" => launch = launch.threads(value()?.parse()?),
            "--by" => match value()?.as_str() {
                "grid" => links = false,
                "links" => links = true,
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
    let named = words.next().unwrap_or("auto").split(',').map(str::parse);
    let named = named.collect::<Result<Vec<Device>, _>>()?;
    let (graph, from) = match &file {
        Some(path) => (read(path, words.next())?, path.display().to_string()),
        None => {
            let (graph, kind) = generate(words.next(), words.next())?;
            (graph, format!("{kind:?}"))
        }
    };
    println!("{} vertices, {} edges, {from}", graph.vertices(), graph.edges().len());
    let ranks = if let [_, _] = named[..] {
        if links || folder.is_some() {
            return Err("two devices rank by grids, and save nothing".into());
        }
        by_two(&Devices::open(&named)?, launch, (&graph, most))?
    } else if let [_, _, _, ..] = named[..] {
        return Err(format!("{} devices: name one or two", named.len()).into());
    } else if links {
        let options = RuntimeConfig::default();
        let options =
            RuntimeConfig { device_bytes: options.device_bytes + channels.bytes(), ..options };
        let host = Runtime::open_with(named[0], options)?;
        by_links(&host, &launch, &graph, channels)?
    } else {
        by_grid(&Runtime::open(named[0])?, launch, (&graph, most), folder.as_deref())?
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
    print(graph, &ranks, ranked.iterations, &times)?;
    if let Some(folder) = folder {
        layout.save(graph, folder, &ranks)?;
    }
    Ok(ranks)
}

/// The same by two devices.
fn by_two(
    devices: &Devices,
    launch: LaunchConfig,
    (graph, most): (&Edges, usize),
) -> Done<Vec<f32>> {
    let mut grids = two::active(devices, launch)?;
    let layout = Layout::new(graph, most, two::grid(&grids));
    let (ranks, ranked, times) =
        two::rank(devices, &mut grids, &layout, (ITERATIONS, 0.0), ENOUGH)?;
    grids.terminate(LONG)?;
    print(graph, &ranks, ranked.iterations, &times)?;
    Ok(ranks)
}

/// Prints how fast ranks were found, and how well.
fn print(graph: &Edges, ranks: &[f32], iterations: u32, times: &[Duration]) -> Done<()> {
    let error = check(ranks, &graph.reference(DAMPING.into(), iterations))?;
    let [p50, p99] = percentiles(times);
    println!(
        "{iterations} iterations in {p50:.1?} (p99 {p99:.1?}, {} times); ranks are {error:.1e} off in all (L1)",
        times.len()
    );
    Ok(())
}

/// The same by messages.
fn by_links(
    host: &Runtime,
    launch: &LaunchConfig,
    graph: &Edges,
    channels: Channels,
) -> Done<Vec<f32>> {
    let found = links::rank(host, launch, graph, channels, (ITERATIONS, 0.0))?;
    let ranks = found.ranks();
    let right = graph.reference(DAMPING.into(), found.last.iterations as u32);
    let error = check(&ranks, &right)?;
    let ([p50, p99], edges) = (percentiles(&found.times), graph.edges().len() as f64);
    println!(
        "{} iterations by {} senders, {} aggregators and {} checkers, of {p50:.1?} each (p99 {p99:.1?}); {:.0} million contributions a second (p50); \
         ranks are {error:.1e} off in all (L1), and changed by {:.1e} in the last iteration",
        found.last.iterations,
        channels.senders,
        channels.aggregators,
        channels.checkers,
        edges / p50.as_secs_f64() / 1e6,
        links::number(found.last.change),
    );
    Ok(ranks)
}

/// The median and the 99th percentile of times in rising order.
fn percentiles(times: &[Duration]) -> [Duration; 2] {
    [times[times.len() / 2], times[times.len() * 99 / 100]]
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
