import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { clientOnPath, clientsAreStored, fetchClients, isExecutable } from './clients.ts';
import { buildGoProgram, goCacheKey, goVersion } from './go.ts';
import { withLock } from './lock.ts';
import { clientPrograms, goPrograms, type Program } from './programs.ts';
import { type OnProgress, reporting } from './progress.ts';

const building = '.building-';

/** Absolute paths of the programs a plane is made of. */
export type Binaries = Readonly<Record<Program, string>>;

/** Programs that a person brought along through the variables of envtest; they win over ours. */
export function broughtAlong(env: NodeJS.ProcessEnv): Partial<Binaries> {
  const folder = env['KUBEBUILDER_ASSETS'];
  const etcd = env['TEST_ASSET_ETCD'] ?? (folder ? join(folder, 'etcd') : undefined);
  const apiserver = env['TEST_ASSET_KUBE_APISERVER'] ?? (folder ? join(folder, 'kube-apiserver') : undefined);
  return { ...(etcd ? { etcd } : {}), ...(apiserver ? { 'kube-apiserver': apiserver } : {}) };
}

/**
 * Makes every program available and says where. What the environment names is taken from there, the rest from the
 * cache (`${XDG_CACHE_HOME:-~/.cache}/drawbridge/sandbox/<key>/`), building what is missing, which takes some eight
 * minutes the first time. `onProgress` hears nothing when all is cached. Several processes may call this at once.
 */
export async function ensureBinaries(options: { readonly onProgress?: OnProgress } = {}): Promise<Binaries> {
  const given = broughtAlong(process.env);
  const folder = join(cacheRoot(), await goCacheKey(await goVersion()));
  const cached = Object.fromEntries([...goPrograms, ...clientPrograms].map((name) => [name, join(folder, name)]));
  const binaries = { ...cached, ...(await clientsElsewhere()), ...given } as Binaries;
  if ((await missing(binaries)).length === 0) return binaries;
  const onProgress = options.onProgress ?? (() => undefined);
  await withLock(`${folder}.lock`, () => fill(folder, binaries, onProgress), {
    onWait: (pid) => onProgress(`process ${pid} is building the sandbox's programs, waiting for it`),
  });
  return binaries;
}

function cacheRoot(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'drawbridge', 'sandbox');
}

async function clientsElsewhere(): Promise<Partial<Binaries>> {
  if (clientsAreStored) return {};
  const [kubectl, helm] = await Promise.all([clientOnPath('kubectl'), clientOnPath('helm')]);
  return { kubectl, helm };
}

async function missing(binaries: Binaries): Promise<Program[]> {
  const names = Object.keys(binaries) as Program[];
  const present = await Promise.all(names.map((name) => isExecutable(binaries[name])));
  return names.filter((_, index) => !present[index]);
}

async function fill(folder: string, binaries: Binaries, onProgress: OnProgress): Promise<void> {
  // Asked again under the lock: whoever held it before may have built everything.
  const wanted = await missing(binaries);
  const foreign = wanted.find((name) => binaries[name] !== join(folder, name));
  if (foreign !== undefined)
    throw new Error(`there is no program at ${binaries[foreign]}, which the environment names`);
  await mkdir(folder, { recursive: true });
  // Every program is moved into place when it is whole, so an interrupted build leaves nothing half.
  await removeAbandoned(folder);
  const workspace = await mkdtemp(`${folder}${building}`);
  try {
    for (const program of goPrograms.filter((name) => wanted.includes(name))) {
      await reporting(`building ${program}`, onProgress, () =>
        buildGoProgram(program, workspace, join(folder, program)),
      );
    }
    if (clientPrograms.some((name) => wanted.includes(name))) {
      await reporting('fetching kubectl and helm', onProgress, () => fetchClients(workspace, folder));
    }
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

// Whoever holds the lock is the only one who builds, so what is there was left by a build that was killed.
async function removeAbandoned(folder: string): Promise<void> {
  const prefix = `${basename(folder)}${building}`;
  const abandoned = (await readdir(dirname(folder))).filter((name) => name.startsWith(prefix));
  await Promise.all(abandoned.map((name) => rm(join(dirname(folder), name), { recursive: true, force: true })));
}
