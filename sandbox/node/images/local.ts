import { mkdir, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type ImageConfig, writeArchive } from './archive.ts';
import { busyboxImage, pauseImage, toolsImage } from './names.ts';
import { packageOf, RootFiles } from './root-files.ts';

/** An image that is made of files of this machine. */
export interface LocalImage {
  readonly name: string;
  readonly config: ImageConfig;
  /** Adds to busybox. */
  readonly fill?: (files: RootFiles) => Promise<void>;
}

const certificates = '/etc/ssl/certs/ca-certificates.crt';
const libraryFolder = '/lib/x86_64-linux-gnu';

/** In place of both base images of the Dockerfile: Node where both have it, npm, and the certificates of this machine. */
export const baseImage: LocalImage = {
  name: 'localhost/base:1',
  config: { Env: ['PATH=/usr/bin:/bin', 'HOME=/root', `NODE_EXTRA_CA_CERTS=${certificates}`], Cmd: ['sh'] },
  fill: async (files) => {
    await files.program(process.execPath, '/nodejs/bin/node');
    await files.link('/usr/bin/node', '/nodejs/bin/node');
    await files.copy(await packageOf('npm'), '/usr/lib/node_modules/npm');
    await files.write('/usr/bin/npm', '#!/bin/sh\nexec node /usr/lib/node_modules/npm/bin/npm-cli.js "$@"\n', 0o755);
    for (const library of ['libnss_dns.so.2', 'libnss_files.so.2', 'libresolv.so.2'])
      await files.copy(`${libraryFolder}/${library}`);
    await files.copy(certificates);
    await files.write('/etc/nsswitch.conf', 'hosts: files dns\n');
  },
};

/** The library of Debian's Python. */
async function pythonLibrary(): Promise<string> {
  const version = (await readlink('/usr/bin/python3')).split('/').at(-1) ?? '';
  return join('/usr/lib', version);
}

/** The images of Pods of the node and of its tests. */
export const podImages: readonly LocalImage[] = [
  { name: pauseImage, config: { Entrypoint: ['/bin/tail', '-f', '/dev/null'] } },
  { name: busyboxImage, config: { Cmd: ['sh'], Env: ['PATH=/bin'] } },
  {
    name: toolsImage,
    config: { Cmd: ['bash'], Env: ['PATH=/usr/bin:/bin'] },
    fill: async (files) => {
      await files.program('/bin/bash');
      const library = await pythonLibrary();
      await files.program('/usr/bin/python3');
      await files.copy(library);
      // The libraries of its line editor.
      for (const name of (await readdir(join(library, 'lib-dynload'))).filter((one) => one.startsWith('readline')))
        await files.program(join(library, 'lib-dynload', name));
    },
  },
];

export async function writeLocalImage(archive: string, workspace: string, image: LocalImage): Promise<void> {
  await mkdir(workspace, { recursive: true });
  const files = await RootFiles.create(workspace);
  await image.fill?.(files);
  await writeArchive(archive, image.name, files.folder, image.config);
}
