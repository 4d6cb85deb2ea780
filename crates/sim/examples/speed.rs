//! scratch
use planewise_model::*; use planewise_sim::*; use rand::RngExt; use std::time::Instant;
fn main(){
 let a:Vec<String>=std::env::args().collect();
 let n:u64=a[1].parse().unwrap(); let gap:f64=a[2].parse().unwrap(); let q:u32=a[3].parse().unwrap(); let sched=&a[4]; let cq=&a[5];
 let mut r=rng::generator(1,"x");
 let mut t=0f64;
 let reqs:Vec<Request>=(0..n).map(|_|{ t+= -gap*(1.0-r.random::<f64>()).ln(); let s=8*r.random_range(1..=4u32); Request::new(Ns(t as u64),Lsn(r.random_range(0..(2u64<<30)/4096-4)*8),s,if r.random::<f64>()<0.6{Direction::Write}else{Direction::Read})}).collect();
 let t0=Instant::now();
 let mut p=Profile::embedded("piq-128g").unwrap(); p.interface.command_queue=cq.clone();
 let mut c=RunConfig::new(p); c.scheduler=sched.clone(); c.queue_length=q;
 if a.len()>6 { c.level=a[6].parse().unwrap(); }
 let stop=std::sync::atomic::AtomicBool::new(false);
 let mut o=drivers::replay::ReplayOptions{warm_up:0,stop:&stop,progress:&mut |_|{},trace:"x"};
 let (res,_)=drivers::replay::replay(&c,&mut reqs.into_iter(),(),&mut o).unwrap();
 let d=t0.elapsed();
 let m=&res.metrics;
 println!("{:?} ns/req {:.0} read {:.0} write {:.0} wait {:.0}/{:.0} chip {:.3} confl {:.3}/{:.3} flash {:?} gc {:?} depth {:.2}",d,d.as_nanos() as f64/n as f64,m.read.latency_ns.mean,m.write.latency_ns.mean,m.read.waiting_ns.mean,m.write.waiting_ns.mean,m.utilization.chip.active,m.conflict.read_share,m.conflict.write_share,m.flash,m.gc,m.mean_queue_depth);
}
