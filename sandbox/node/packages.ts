import { access } from 'node:fs/promises';
import { run } from '../build/run.ts';

/** What the node needs of the machine, by the Debian package that has it. */
const packages: Readonly<Record<string, string>> = {
  '/usr/sbin/runc': 'runc',
  '/usr/lib/cni/bridge': 'containernetworking-plugins',
  '/usr/sbin/iptables': 'iptables',
  '/usr/sbin/conntrack': 'conntrack',
  '/usr/bin/busybox': 'busybox-static',
  '/usr/bin/buildah': 'buildah',
  '/usr/sbin/ip': 'iproute2',
  '/usr/bin/python3': 'python3',
  '/usr/bin/curl': 'curl',
};

/** Installs what is missing. */
export async function installPackages(onProgress: (line: string) => void): Promise<void> {
  const wanted = await missing();
  if (wanted.length === 0) return;
  onProgress(`installing ${wanted.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const args of [['update'], ['install', '--yes', '--no-install-recommends', ...wanted]]) {
    const { code, stderr } = await run('apt-get', args, { env });
    if (code !== 0) throw new Error(`apt-get ${args.join(' ')} ended with ${code}:\n${stderr.slice(-2000)}`);
  }
}

async function missing(): Promise<string[]> {
  const paths = Object.keys(packages);
  const absent = await Promise.all(
    paths.map((path) =>
      access(path).then(
        () => false,
        () => true,
      ),
    ),
  );
  return paths.filter((_, index) => absent[index]).map((path) => packages[path] ?? '');
}
