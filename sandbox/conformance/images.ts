import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type LocalImage, writeLocalImage } from '../node/images/local.ts';
import type { RealNode } from '../node/node.ts';

/** The registry of the suite's images, in place of the public ones. The node has them, and pulls none. */
const registry = 'localhost/suite';

/** The content of the file that KUBE_TEST_REPO_LIST names. */
export const registries = ['promoterE2eRegistry', 'gcRegistry', 'dockerLibraryRegistry', 'gcEtcdRegistry']
  .map((name) => `${name}: ${registry}\n`)
  .join('');

const nginxConfig = `daemon off; error_log stderr; pid /tmp/nginx.pid; events {}
http { access_log off; server { listen 80; root /usr/share/nginx/html; } }
`;

/** Images of the suite, with its own names and versions. Its servers are in agnhost. */
const suiteImages = (agnhost: string): readonly LocalImage[] => [
  ...['agnhost:2.63.0', 'agnhost:2.55'].map((name) => ({
    name: `${registry}/${name}`,
    config: { Entrypoint: ['/agnhost'], Cmd: ['pause'], Env: ['PATH=/bin:/usr/bin'] },
    fill: (files: Files) => files.copy(agnhost, '/agnhost'),
  })),
  { name: `${registry}/busybox:1.37.0-1`, config: { Cmd: ['sh'], Env: ['PATH=/bin'] } },
  { name: `${registry}/pause:3.10.2`, config: { Entrypoint: ['/bin/tail', '-f', '/dev/null'] } },
  ...['nginx:1.15-4', 'nginx:1.27-0'].map((name) => ({
    name: `${registry}/${name}`,
    config: { Cmd: ['/usr/sbin/nginx', '-c', '/etc/nginx.conf'], Env: ['PATH=/bin:/usr/bin'] },
    fill: async (files: Files) => {
      await files.program('/usr/sbin/nginx');
      await files.copy('/usr/share/nginx/html');
      await files.write('/etc/nginx.conf', nginxConfig);
      await files.write('/var/log/nginx/error.log', '');
      await files.write('/var/lib/nginx/empty', '');
    },
  })),
];

type Files = Parameters<NonNullable<LocalImage['fill']>>[0];

/** Makes the suite's images of files of this machine, and imports them. `agnhost`: path of the program. */
export async function importSuiteImages(node: RealNode, agnhost: string): Promise<void> {
  const workspace = await mkdtemp(join(node.directory, 'suite-images-'));
  for (const image of suiteImages(agnhost)) {
    const archive = join(workspace, 'image.tar');
    await writeLocalImage(archive, workspace, image);
    await node.importImage(archive);
  }
  await rm(workspace, { recursive: true });
}
