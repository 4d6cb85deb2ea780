//! `--block-layer`: whether one request leaves the scheduler before the device has a tag for it.

use planewise_model::{Direction, Lsn, Ns, Profile, Request};
use planewise_sim::RunConfig;
use planewise_sim::host::{
    BlockLayer, CommandQueue, DeviceWaits, HostStack, Merging, Overlap, QueuedRequest, RequestPools, Slot,
    StackConfig,
};

fn stack(scheduler: &str, block_layer: BlockLayer, command_queue: CommandQueue) -> Result<HostStack, String> {
    let config =
        RunConfig { scheduler: scheduler.into(), ..RunConfig::new(Profile::embedded("piq-128g").unwrap()) };
    let knowledge = config.host_knowledge().unwrap();
    HostStack::new(&StackConfig {
        scheduler: config.scheduler.clone(),
        tunables: Vec::new(),
        conflict_units: knowledge.units.clone(),
        knowledge,
        merging: Merging::None,
        max_sectors_kb: config.max_sectors_kb,
        overlap: Overlap::Ignore,
        block_layer,
        command_queue,
        request_pools: RequestPools::One,
        slots_apart: 0,
    })
    .map_err(|error| error.to_string())
}

/// Two writes and then a read come to a device of one tag: the directions in which they go.
fn order(scheduler: &str, block_layer: BlockLayer) -> Vec<Direction> {
    let mut stack = stack(scheduler, block_layer, CommandQueue::Ncq(1)).unwrap();
    let any = |_: &QueuedRequest| true;
    let mut order = Vec::new();
    let mut out: Option<Slot> = None;
    for (at, direction) in [Direction::Write, Direction::Write, Direction::Read].into_iter().enumerate() {
        let now = Ns(at as u64);
        stack.enter(now, &Request::new(now, Lsn(8 * at as u64), 8, direction), &mut (), |(), _, _| {});
        while let Some(slot) = stack.next_issue(now, &any, &mut ()) {
            order.push(stack.queue().get(slot).request.direction);
            out = Some(slot);
        }
    }
    let mut now = Ns(100);
    while let Some(slot) = out.take() {
        stack.complete(now, slot, DeviceWaits::default(), &mut ());
        while let Some(slot) = stack.next_issue(now, &any, &mut ()) {
            order.push(stack.queue().get(slot).request.direction);
            out = Some(slot);
        }
        now += Ns(100);
    }
    order
}

#[test]
fn a_write_that_was_taken_before_there_is_a_tag_goes_before_a_read_that_came_later() {
    use Direction::{Read, Write};
    for scheduler in ["piq+", "piq", "rws"] {
        assert_eq!(order(scheduler, BlockLayer::Direct), [Write, Read, Write], "{scheduler}");
        assert_eq!(order(scheduler, BlockLayer::BlkMq), [Write, Write, Read], "{scheduler}");
    }
    // Whose own block layer does so takes one, and not two.
    for layer in [BlockLayer::Direct, BlockLayer::BlkMq] {
        assert_eq!(order("mq-deadline", layer), [Write, Write, Read]);
    }
}

#[test]
fn a_device_without_tags_is_refused() {
    let refused = stack("piq+", BlockLayer::BlkMq, CommandQueue::Blocking).err().unwrap();
    assert!(refused.contains("block_layer") && refused.contains("ncq:D"), "{refused}");
    assert!(stack("piq+", BlockLayer::Direct, CommandQueue::Blocking).is_ok());
}
