import { run } from '../build/run.ts';
import type { Namespaces } from './namespaces.ts';

/** How this machine reaches a node: a pair of addresses in 172.30.0.0/16, of which each node has four. */
export interface Link {
  /** The end on this machine; its name is unique, and removing it removes both. */
  readonly device: string;
  readonly host: string;
  readonly node: string;
}

const prefix = 'drawbridge';
const podNetwork = '10.244.0.0/24';
const available = 256;

const linkAt = (index: number): Link => ({
  device: `${prefix}${index}`,
  host: `172.30.${index}.1`,
  node: `172.30.${index}.2`,
});

/** The address of this machine for a node and its Pods, by the address of that node. */
export const hostOf = (node: string): string => node.replace(/\.2$/, '.1');

/** Connects the namespaces of a node with this machine. The kernel removes the link with them. */
export async function connect(namespaces: Namespaces): Promise<Link> {
  for (let index = 0; index < available; index += 1) {
    const link = linkAt(index);
    const peer = ['peer', 'name', 'eth0', 'netns', `${namespaces.pid}`];
    const { code, stderr } = await run('ip', ['link', 'add', link.device, 'type', 'veth', ...peer]);
    // Another node has this link.
    if (code !== 0 && stderr.includes('File exists')) continue;
    if (code !== 0) throw new Error(`no link to the node: ${stderr}`);
    await ip('address', 'add', `${link.host}/30`, 'dev', link.device);
    await ip('link', 'set', link.device, 'up');
    await namespaces.run('sh', ['-c', script, 'network', `${link.node}/30`, link.host]);
    return link;
  }
  throw new Error(`${available} nodes run here already`);
}

// Local processes need a route to the addresses of Services. Nothing else leaves the node, so what it cannot reach fails at once. In OUTPUT,
// a packet for a Service has the address of a Pod already, but still the interface of that route.
// This machine has no route back to Pods, so they call it from the address of the node.
const script = `
set -e
ip address add "$1" dev eth0
ip link set eth0 up
ip route add default via "$2"
iptables -w -A OUTPUT -o eth0 -d ${podNetwork} -j ACCEPT
for chain in OUTPUT FORWARD; do iptables -w -A $chain -o eth0 ! -d "$1" -j REJECT; done
[ -d /proc/sys/net/bridge ] || modprobe br_netfilter
iptables -w -t nat -A POSTROUTING -o eth0 -s ${podNetwork} -j MASQUERADE
sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1 net.ipv4.conf.all.rp_filter=0
`;

async function ip(...args: string[]): Promise<void> {
  const { code, stderr } = await run('ip', args);
  if (code !== 0) throw new Error(`ip ${args.join(' ')} ended with ${code}: ${stderr}`);
}

/** The CNI configuration: a bridge, and addresses that one node assigns. */
export const podNetworkConfiguration = (dataDir: string): object => ({
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      hairpinMode: true,
      ipam: { type: 'host-local', dataDir, ranges: [[{ subnet: podNetwork }]], routes: [{ dst: '0.0.0.0/0' }] },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
});
