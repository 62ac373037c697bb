//! A trace of a kernel that answers nothing.

ring_device::ring_kernel! {
    pub struct Passes {
        traced: true,
        ports: { ON: [u64; 1], },
    }

    fn handle(request: &u64, out: &mut Ports) {
        out.emit(Passes::ON, *request);
    }
}

fn main() {}
