import { readFile, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';

const nobodyUid = 65534;
const isRoot = process.getuid?.() === 0;

/** The user of this machine that runs commands exec'ed into Pods: uid 65534 if this process runs as root, else the current user. */
export const execUser = isRoot ? 'nobody' : userInfo().username;

/** Writes kwok's configuration: the stages, and how kwok answers exec. */
export async function writeKwokConfig(directory: string): Promise<void> {
  const local = {
    workDir: '/',
    envs: [{ name: 'HOME', value: '/' }],
    ...(isRoot ? { securityContext: { runAsUser: nobodyUid, runAsGroup: nobodyUid } } : {}),
  };
  const exec = {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'ClusterExec',
    metadata: { name: 'any-pod' },
    spec: { selector: {}, execs: [{ local }] },
  };
  const stages = await readFile(join(import.meta.dirname, 'stages.yaml'), 'utf8');
  await writeFile(join(directory, 'kwok.yaml'), `${stages}---\n${stringify(exec)}`);
}
