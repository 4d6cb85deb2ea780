//! scratch
use planewise_model::*; use planewise_sim::*;
fn main(){
 let a:Vec<String>=std::env::args().collect();
 let text=std::fs::read_to_string(&a[1]).unwrap();
 let mut p=Profile::embedded("piq-128g").unwrap(); if a.len()>2 {p.interface.command_queue=a[2].clone();}
 let us=p.user_capacity().0/512;
 let mut reqs:Vec<Request>=text.lines().filter_map(|l|{let f:Vec<&str>=l.split(',').collect(); let t:u64=f[0].parse().ok()?; let o:u64=f[4].parse().ok()?; let n:u64=f[5].parse().ok()?; let s=(n.div_ceil(512)) as u32; let st=(o/512)%(us-4096); Some(Request::new(Ns(t),Lsn(st),s,if f[3]=="Read"{Direction::Read}else{Direction::Write}))}).collect();
 reqs.sort_by_key(|r|r.arrival); let t0=reqs[0].arrival.0; for r in &mut reqs { r.arrival=Ns((r.arrival.0-t0)*100);} 
 let mut base:Option<results::Metrics>=None;
 for (s,b,l) in [("noop","",""),("rws","",""),("piq_r","issue",""),("piq_w","issue",""),("piq","issue",""),("piq","complete",""),("piq+","issue",""),("piq+","complete",""),("noop","","plane"),("piq+","issue","plane")]{
  let mut c=RunConfig::new(p.clone()); c.scheduler=s.into(); if !b.is_empty(){c.tunables.push(("barrier".into(),b.into()));}
  if l=="plane"{c.level=UnitLevel::Plane;}
  let stop=std::sync::atomic::AtomicBool::new(false);
  let mut o=drivers::replay::ReplayOptions{warm_up:0,stop:&stop,progress:&mut |_|{},trace:"x"};
  let (r,_)=drivers::replay::replay(&c,&mut reqs.iter().copied(),(),&mut o).unwrap(); let m=r.metrics;
  if base.is_none(){base=Some(m.clone());} let b0=base.as_ref().unwrap();
  println!("{s:6}{b:9}{l:6} R {:9.0} x{:.2} W {:9.0} x{:.2} waitR x{:.2} waitW x{:.2} chip {:.3} x{:.2} confl {:.3}/{:.3} prio {:.3}/{:.3} rmw {} mp {}",m.read.latency_ns.mean,m.read.latency_ns.mean/b0.read.latency_ns.mean,m.write.latency_ns.mean,m.write.latency_ns.mean/b0.write.latency_ns.mean,m.read.waiting_ns.mean/b0.read.waiting_ns.mean,m.write.waiting_ns.mean/b0.write.waiting_ns.mean,m.utilization.chip.active,m.utilization.chip.active/b0.utilization.chip.active,m.conflict.read_share,m.conflict.write_share,m.prioritized.read_share,m.prioritized.write_batch_share,m.flash.read_modify_writes,m.flash.multiplane);
 }
}
