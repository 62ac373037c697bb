//! The graph that counts words: `lines --> split --by hash--> word_count`. Nothing comes back but what the last kernel keeps.

use crate::LIMIT;
use ring_example_kernels::pipeline::{Line, Split, Word, WordCount};
use ring_host::{Error, GraphBuilder, Kernels, LaunchConfig, Route, Runtime, TryRecvError};
use std::collections::HashMap;

/// Channels that count, each the words whose hashes are its own.
const CHANNELS: u32 = 3;

/// Abraham Lincoln at Gettysburg, 1863.
const TEXT: &str = "\
Four score and seven years ago our fathers brought forth on
this continent, a new nation, conceived in Liberty, and
dedicated to the proposition that all men are created equal.

Now we are engaged in a great civil war, testing whether
that nation, or any nation so conceived and so dedicated,
can long endure. We are met on a great battle-field of that
war. We have come to dedicate a portion of that field, as a
final resting place for those who here gave their lives that
that nation might live. It is altogether fitting and proper
that we should do this.

But, in a larger sense, we can not dedicate, we can not
consecrate, we can not hallow this ground. The brave men,
living and dead, who struggled here, have consecrated it,
far above our poor power to add or detract. The world will
little note, nor long remember what we say here, but it can
never forget what they did here. It is for us the living,
rather, to be dedicated here to the unfinished work which
they who fought here have thus far so nobly advanced. It is
rather for us to be here dedicated to the great task
remaining before us, that from these honored dead we take
increased devotion to that cause for which they gave the
last full measure of devotion, that we here highly resolve
that these dead shall not have died in vain, that this
nation, under God, shall have a new birth of freedom, and
that government of the people, by the people, for the
people, shall not perish from the earth.";

/// Counts the words of the text, so many times over.
pub fn run(runtime: &Runtime, kernels: Kernels, times: u64) -> Result<(), Error> {
    let launch = LaunchConfig::default().kernels(kernels);
    let mut graph = GraphBuilder::new();
    let split = graph.kernel::<Split>(launch.clone());
    let count = graph.kernel::<WordCount>(launch.channels(CHANNELS));
    graph.feed(split).link(split, Split::WORDS, count, Route::ByKey);
    let long = graph.read(split, Split::LONG);

    let mut graph = runtime.launch_graph(&graph)?;
    graph.activate(LIMIT)?;
    let (mut lines, mut long) = (graph.sender(split, 0)?, graph.receiver(long, 0)?);
    for _ in 0..times {
        for line in TEXT.lines() {
            lines.send(Line::new(line).expect("at most 64 bytes"), LIMIT)?;
        }
    }
    graph.drain(LIMIT)?;
    // The text has no such line: the port's ring stays empty, and nobody had to read it meanwhile.
    assert_eq!(long.try_recv(), Err(TryRecvError::Empty));

    let mut counts: HashMap<Word, u64> = HashMap::new();
    for channel in 0..CHANNELS {
        let state = graph.kernel(count)?.read_state(channel, LIMIT)?;
        assert_eq!(state.dropped, 0);
        for entry in state.words.iter().filter(|entry| entry.count > 0) {
            let other = counts.insert(entry.word, entry.count);
            assert!(other.is_none(), "{} is counted in two places", entry.word);
        }
    }
    graph.terminate(LIMIT)?;
    assert_eq!(counts, expected(times));

    let all: u64 = counts.values().sum();
    let (word, most) = counts.iter().max_by_key(|(_, n)| **n).expect("there are words");
    println!("{all} words, {} different ones; most often {word}, {most} times", counts.len());
    Ok(())
}

/// How often each word of the text comes.
fn expected(times: u64) -> HashMap<Word, u64> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    let words = TEXT.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        *counts.entry(word.to_ascii_lowercase()).or_default() += times;
    }
    counts.into_iter().map(|(word, count)| (Word::new(word.as_bytes()), count)).collect()
}
