//! Grids of one kernel on several devices: they meet, see what the others wrote, and end together.

use crate::devices::{two_cpus, two_gpus, with};
use ring_example_kernels::{Astray, Meeting, Meetings, Met, Passes, Passing};
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::{
    Buffer, BufferError, ControlError, DeviceFault, DeviceKind, Devices, Exit, Grids, GridsError,
    LaunchConfig, LaunchError, MAX_DEVICES, Memory, Mode, NoPeer, RecvTimeoutError, RuntimeConfig,
    SendTimeoutError, TryRecvError, TrySendError,
};
use ring_tests::{LONG, Progress, cpu, gpu, kernels, opened};
use std::time::Duration;

fn config(blocks: u32, threads: u32) -> LaunchConfig {
    let launch = LaunchConfig::default().blocks(blocks).threads(threads);
    launch.kernels(kernels::of_examples::<Meetings>())
}

fn launched(devices: &Devices, launch: LaunchConfig) -> Grids<Meetings> {
    let launched = devices.launch_grids::<Meetings>(launch);
    let mut grids = launched.unwrap_or_else(|error| panic!("{error}"));
    grids.activate(LONG).unwrap();
    grids
}

/// Runs a test on several devices that reach each other: two and three of CPU threads, one, and two GPUs if there are any.
fn on_devices(test: impl Fn(&Devices)) {
    test(&two_cpus());
    if !cfg!(miri) {
        test(&Devices::of([cpu(), cpu(), cpu()]).unwrap());
        test(&Devices::of([cpu()]).unwrap());
    }
    if let Some(two) = two_gpus()
        && two.are_peers(0, 1).is_ok()
    {
        for host in &two {
            host.prepare::<Meetings>(&config(2, 64)).unwrap();
        }
        test(&two);
    }
}

/// What each device brings to that message.
fn brings(devices: usize, message: u64, barriers: u32) -> Vec<Meeting> {
    let of = |device| Meeting { brings: (device + 1) * message, barriers, astray: 0 };
    (0..devices as u64).map(of).collect()
}

/// What they find.
fn met(devices: usize, message: u64, blocks: u32) -> Vec<Met> {
    let n = devices as u64;
    let of = |device| Met {
        sum: n * (n + 1) / 2 * message,
        greatest: n * message,
        blocks: n * u64::from(blocks),
        device,
        devices: devices as u32,
    };
    (0..devices as u32).map(of).collect()
}

fn exchange(grids: &mut Grids<Meetings>, message: u64, barriers: u32) -> Vec<Met> {
    let mut answers = vec![Met::default(); grids.len()];
    grids.send(&brings(grids.len(), message, barriers), LONG).unwrap();
    grids.recv(&mut answers, LONG).unwrap();
    answers
}

#[test]
fn the_blocks_of_all_devices_meet() {
    let sizes: &[_] =
        if cfg!(miri) { &[(2, 32)] } else { &[(1, 32), (2, 32), (3, 64), (4, 512), (7, 96)] };
    on_devices(|devices| {
        for (blocks, threads) in sizes.iter().copied() {
            let mut grids = launched(devices, config(blocks, threads));
            let messages = if cfg!(miri) { 2 } else { 40 };
            for message in 1..=messages {
                let answers = exchange(&mut grids, message, message as u32 % 5);
                assert_eq!(answers, met(devices.len(), message, blocks), "{blocks} x {threads}");
            }
            let summaries = grids.terminate(LONG).unwrap();
            assert_eq!(summaries.len(), devices.len());
            assert!(summaries.iter().all(|s| (s.processed, s.unhandled) == (messages, 0)));
            assert!(matches!(
                grids.try_send(&brings(devices.len(), 1, 0)),
                Err(TrySendError::Closed { .. })
            ));
        }
    });
}

#[test]
fn messages_in_flight_are_answered_in_order_and_through_pauses() {
    on_devices(|devices| {
        let capacity = 8;
        let mut grids = launched(devices, config(2, 64).capacity(capacity));
        assert_eq!(grids.capacity(), capacity as usize);
        let (mut sent, mut received) = (0, 0);
        let n = devices.len();
        for round in 0..if cfg!(miri) { 2 } else { 20 } {
            loop {
                match grids.try_send(&brings(n, sent + 1, (sent % 3) as u32)) {
                    Ok(()) => sent += 1,
                    Err(TrySendError::Full(())) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(grids.unanswered(), capacity as usize);
            let late = grids.send(&brings(n, 1, 0), Duration::from_millis(1)).unwrap_err();
            assert!(matches!(late, SendTimeoutError::Timeout { .. }), "{late}");
            // All that was sent is answered first, and can be received behind that.
            if round % 2 == 0 {
                grids.deactivate(LONG).unwrap();
                let refused = grids.try_send(&brings(n, 1, 0));
                assert!(
                    matches!(refused, Err(TrySendError::Full(()))),
                    "no room is left: {refused:?}"
                );
            }
            let mut answers = vec![Met::default(); n];
            while received < sent {
                grids.recv(&mut answers, LONG).unwrap();
                received += 1;
                assert_eq!(answers, met(n, received, 2));
            }
            assert!(matches!(grids.try_recv(&mut answers), Err(TryRecvError::Empty)));
            if round % 2 == 0 {
                let refused = grids.try_send(&brings(n, 1, 0)).unwrap_err();
                assert!(matches!(refused, TrySendError::NotActive { .. }), "{refused}");
                grids.activate(LONG).unwrap();
            }
        }
        for _ in 0..3 {
            grids.send(&brings(n, 1, 4), LONG).unwrap();
        }
        let summaries = grids.terminate(LONG).unwrap();
        assert!(summaries.iter().all(|s| (s.processed, s.unhandled) == (sent + 3, 0)));
    });
}

/// The buffers of all devices, and of each those of the next one as they are lent to it.
type Words = (Vec<[Buffer<u32>; 2]>, Vec<[Buffer<u32>; 2]>);

fn words(devices: &Devices, length: usize) -> Words {
    let own: Vec<[Buffer<u32>; 2]> =
        devices.iter().map(|host| [0, 1].map(|_| host.buffer(length).unwrap())).collect();
    let lent = |device: usize| {
        let next = &own[(device + 1) % own.len()];
        next.each_ref().map(|buffer| devices.lend(buffer, device).unwrap())
    };
    let lent = (0..devices.len()).map(lent).collect();
    (own, lent)
}

/// Reclaims all buffers that were given back, also those of another test that uses the devices.
fn reclaim(devices: &Devices) {
    let progress = &mut Progress::new();
    for host in devices {
        while host.reclaim_buffers(LONG).unwrap() > 0 {
            progress.is_at(0, "buffers that were given back");
        }
    }
}

#[test]
fn what_a_device_writes_to_another_is_seen_there_behind_a_meeting() {
    on_devices(|devices| {
        let n = devices.len();
        let (length, rounds) = if cfg!(miri) { (10, 5) } else { (5000, 101) };
        let launch = config(3, 128).kernels(kernels::of_examples::<Passing>());
        let mut grids = devices.launch_grids::<Passing>(launch).unwrap();
        grids.activate(LONG).unwrap();
        let (own, next) = words(devices, length);
        let first = |device: usize, i: usize| (device * 1_000_000 + i) as u32;
        for (device, [even, _]) in own.iter().enumerate() {
            let words: Vec<u32> = (0..length).map(|i| first(device, i)).collect();
            even.upload(0, &words, LONG).unwrap();
        }
        let requests: Vec<Passes> = (own.iter().zip(&next))
            .map(|(own, next)| Passes {
                own: own.each_ref().map(|buffer| buffer.reference()),
                next: next.each_ref().map(|buffer| buffer.reference()),
                rounds,
            })
            .collect();
        let mut answers = vec![0; n];
        grids.send(&requests, LONG).unwrap();
        grids.recv(&mut answers, LONG).unwrap();
        assert_eq!(answers, vec![length as u64; n]);
        for (device, own) in own.iter().enumerate() {
            let from = (device + n * rounds as usize - rounds as usize) % n;
            let mut found = vec![0; length];
            own[rounds as usize % 2].download(0, &mut found, LONG).unwrap();
            let right = (0..length).map(|i| first(from, i) + rounds as u32);
            assert!(right.eq(found.iter().copied()), "device {device}: {:?}", &found[..5]);
            // What was lent is the same memory.
            let lent = &next[(device + n - 1) % n][rounds as usize % 2];
            let mut through = vec![0; length];
            lent.download(0, &mut through, LONG).unwrap();
            assert_eq!(through, found);
            lent.upload(3, &[77], LONG).unwrap();
            own[rounds as usize % 2].download(3, &mut found[..1], LONG).unwrap();
            assert_eq!(found[0], 77);
        }
        // A device that does not see its words ends the message for all.
        drop(next);
        reclaim(devices);
        grids.send(&requests, LONG).unwrap();
        grids.recv(&mut answers, LONG).unwrap();
        assert_eq!(answers, vec![0; n]);
        grids.terminate(LONG).unwrap();
    });
}

/// The fault behind that of a kernel, if there is one.
fn cause(error: RecvTimeoutError) -> DeviceFault {
    match error {
        RecvTimeoutError::Fault(fault) => fault,
        error => panic!("{error}"),
    }
}

#[test]
fn a_device_that_goes_astray_ends_all() {
    on_devices(|devices| {
        let n = devices.len();
        let is_gpu = devices[0].device().kind == DeviceKind::Cuda;
        let bears = !is_gpu || kernels::bears_panics::<Meetings>("a grid that panics");
        for astray in [
            Astray::FirstMisses,
            Astray::LastMisses,
            Astray::LastWaits,
            Astray::FirstPanics,
            Astray::LastPanics,
        ] {
            let panics = matches!(astray, Astray::FirstPanics | Astray::LastPanics);
            if panics && !bears {
                continue;
            }
            for device in 0..n {
                let mut grids = launched(devices, config(3, 64));
                assert_eq!(exchange(&mut grids, 5, 2), met(n, 5, 3));
                let mut requests = brings(n, 6, 1);
                requests[device].astray = astray as u32;
                grids.send(&requests, LONG).unwrap();
                let mut answers = vec![Met::default(); n];
                let fault = cause(grids.recv(&mut answers, LONG).unwrap_err());
                match &fault {
                    DeviceFault::HandlerPanicked { kernel: "meetings", .. } if panics => {}
                    DeviceFault::Left { exit: Exit::MissedBarrier, .. } if !panics => {}
                    fault => panic!("{astray:?} on device {device}: {fault}"),
                }
                let again = grids.try_send(&brings(n, 1, 0)).unwrap_err();
                assert!(
                    matches!(&again, TrySendError::Fault { fault: again, .. } if *again == fault),
                    "{again}"
                );
                assert_eq!(grids.check(), Err(fault.clone()));
                let drained = grids.deactivate(LONG).unwrap_err();
                assert_eq!(drained, ControlError::Fault(fault));
                let summaries = grids.terminate(LONG).unwrap();
                assert!(summaries.iter().all(|summary| summary.processed <= 2), "{summaries:?}");
            }
        }
        let mut grids = launched(devices, config(3, 64));
        assert_eq!(exchange(&mut grids, 5, 2), met(n, 5, 3));
    });
}

/// A grid whose handler returns from all of a message while another device's waits, which then is not answered.
#[test]
fn a_device_that_returns_from_a_message_that_another_waits_in_ends_it() {
    on_devices(|devices| {
        let n = devices.len();
        if n == 1 {
            return;
        }
        for more in 1..3 {
            let mut grids = launched(devices, config(2, 64));
            let mut requests = brings(n, 6, 1);
            requests[1].barriers += more; // the others answer, or wait elsewhere
            grids.send(&requests, LONG).unwrap();
            let mut answers = vec![Met::default(); n];
            let end = grids.recv(&mut answers, LONG);
            let fault = cause(end.unwrap_err());
            assert!(
                matches!(fault, DeviceFault::Left { exit: Exit::MissedBarrier, .. }),
                "{fault}"
            );
        }
    });
}

#[test]
fn a_device_lost_while_others_wait_for_it_is_named_and_ends_them() {
    let quirky = Quirks::of(Cpu::open()).fault_after(100);
    let devices = Devices::of([cpu(), opened(&quirky, RuntimeConfig::default())]).unwrap();
    let mut grids = launched(&devices, config(2, 64));
    let mut answers = [Met::default(); 2];
    let error = loop {
        if let Err(error) = grids.send(&brings(2, 1, 1), LONG) {
            let SendTimeoutError::Fault { fault, .. } = error else { panic!("{error}") };
            break fault;
        }
        if let Err(error) = grids.recv(&mut answers, LONG) {
            break cause(error);
        }
    };
    assert!(
        matches!(&error, DeviceFault::Device { kernel: "meetings", device, .. } if device.starts_with("CPU")),
        "{error}"
    );
    assert_eq!(grids.check(), Err(error));
    drop(grids);
    let others = Devices::of([devices[0].clone(), cpu()]).unwrap();
    let mut grids = launched(&others, config(2, 64));
    assert_eq!(exchange(&mut grids, 5, 2), met(2, 5, 2));
    grids.terminate(LONG).unwrap();
}

#[test]
fn dropping_grids_that_wait_for_each_other_ends_them() {
    on_devices(|devices| {
        for messages in [0, 1, 5] {
            let mut grids = launched(devices, config(2, 64));
            for message in 0..messages {
                grids.send(&brings(devices.len(), message, 3), LONG).unwrap();
            }
            drop(grids);
            reclaim(devices);
            let mut grids = launched(devices, config(2, 64));
            assert_eq!(exchange(&mut grids, 3, 1), met(devices.len(), 3, 2));
        }
    });
}

#[test]
fn grids_that_cannot_be_are_refused_by_numbers_and_names() {
    let launch = config(2, 64);
    let refused = |devices: &Devices, launch: &LaunchConfig| {
        devices.launch_grids::<Meetings>(launch.clone()).map(drop).unwrap_err()
    };
    let apart = with(Quirks::no_peers);
    let error = refused(&apart, &launch);
    assert!(
        matches!(
            error,
            GridsError::NoPeer { kernel: "meetings", from: 1, to: 0, why: NoPeer::TakenAway }
        ),
        "{error}"
    );
    if let Some(gpu) = gpu() {
        let kinds = Devices::of([cpu(), gpu]).unwrap();
        assert!(matches!(refused(&kinds, &launch), GridsError::NoPeer { why: NoPeer::Kinds, .. }));
    }
    let many = Devices::of((0..=MAX_DEVICES).map(|_| cpu())).unwrap();
    let error = refused(&many, &launch);
    assert_eq!(error, GridsError::TooManyDevices { kernel: "meetings", devices: MAX_DEVICES + 1 });
    let two = two_cpus();
    let asked = launch.clone().mode(Mode::EventDriven);
    assert!(matches!(
        refused(&two, &asked),
        GridsError::NotResident { mode: Mode::EventDriven, .. }
    ));
    let asked = launch.clone().memory(Memory::StagedSync);
    assert!(matches!(refused(&two, &asked), GridsError::NotResident { .. }));
    let error = refused(&two, &config(1025, 64));
    let GridsError::OnDevice { number: 0, source, .. } = error else { panic!("{error}") };
    assert!(
        matches!(*source, GridsError::Launch(LaunchError::Blocks { blocks: 1025, .. })),
        "{source}"
    );

    let buffer = two[0].buffer::<f32>(10).unwrap();
    assert_eq!(apart.lend(&buffer, 0).unwrap_err(), BufferError::Elsewhere);
    let buffer = apart[0].buffer::<f32>(10).unwrap();
    let error = apart.lend(&buffer, 1).unwrap_err();
    assert!(
        matches!(error, BufferError::NoPeer { from: 0, to: 1, why: NoPeer::TakenAway }),
        "{error}"
    );
    assert!(apart.lend(&buffer, 0).is_ok(), "its own");
    // What was lent is memory of the device that it was lent from, to whatever device it is lent again.
    let quirky = Quirks::of(Cpu::open()).no_peers();
    let three = [apart[0].clone(), cpu(), opened(&quirky, RuntimeConfig::default())];
    let three = Devices::of(three).unwrap();
    let lent = three.lend(&buffer, 1).unwrap();
    let twice = three.lend(&lent, 1).unwrap();
    for lent in [&lent, &twice] {
        let error = three.lend(lent, 2).unwrap_err();
        assert!(matches!(error, BufferError::NoPeer { from: 0, to: 2, .. }), "{error}");
        assert!(three.lend(lent, 0).is_ok());
    }
}

#[test]
fn a_lent_buffer_keeps_the_memory_of_the_one_that_was_lent() {
    let two = two_cpus();
    let buffer = two[0].buffer::<u32>(100).unwrap();
    buffer.upload(0, &[7; 100], LONG).unwrap();
    let lent = two.lend(&buffer, 1).unwrap();
    drop(buffer);
    // It would be zeroed for this one.
    let other = two[0].buffer::<u32>(100).unwrap();
    let mut found = [0; 100];
    lent.download(0, &mut found, LONG).unwrap();
    assert_eq!(found, [7; 100]);
    drop(lent);
    assert_eq!(two[1].reclaim_buffers(LONG).unwrap(), 0);
    assert_eq!(two[0].reclaim_buffers(LONG).unwrap(), 0);
    drop(other);
}
