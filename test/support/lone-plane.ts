// A program for the test that kills a plane's parent: starts a small plane, prints its folder, and waits.
import { startPlane } from '../../sandbox/plane.ts';

const plane = await startPlane({ components: [] });
const pids = [plane.component('etcd').pid, plane.component('kube-apiserver').pid];
console.log(JSON.stringify({ server: plane.server, directory: plane.directory, pids }));
setInterval(() => undefined, 60_000);
