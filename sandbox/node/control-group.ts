import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const root = '/sys/fs/cgroup';

/** The folders of a control group: one with version 2, one in each hierarchy with version 1. */
export async function controlGroupFolders(name: string): Promise<string[]> {
  if (existsSync(join(root, 'cgroup.controllers'))) return [join(root, name)];
  const hierarchies = await readdir(root, { withFileTypes: true });
  // Links are further names of a hierarchy.
  return hierarchies.filter((entry) => entry.isDirectory()).map((entry) => join(root, entry.name, name));
}

/** Creates the group below which the kubelet puts its Pods. Two kubelets with one group would kill each other's Pods. */
export async function createControlGroup(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    await mkdir(folder);
    // With version 1, a new group has no processors and no memory until someone assigns them.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      const above = join(folder, '..', file);
      if (existsSync(above)) await writeFile(join(folder, file), await readFile(above));
    }
  }
}

/** Ids of the processes of a container, as this machine counts them, from the group of its Pod. */
export async function processesOf(group: string, containerId: string): Promise<number[]> {
  for (const folder of await controlGroupFolders(group)) {
    const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
    const container = found.find((entry) => entry.isDirectory() && entry.name === containerId);
    if (container === undefined) continue;
    const text = await readFile(join(container.parentPath, container.name, 'cgroup.procs'), 'utf8').catch(() => '');
    return text.split('\n').filter(Boolean).map(Number);
  }
  return [];
}
