import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { baseImage, writeLocalImage } from '../../sandbox/node/images/local.ts';
import { drawbridgeRepository } from '../../sandbox/node/images/names.ts';
import { EarlierVersion } from './earlier-version.ts';
import type { NodeStage } from './node-stage.ts';

/** From which users upgrade: the last commit on the main branch before the work on the next one. */
const commit = '04d1799fcabd49b5cb68bc4913323ff1631fe2c1';

/** False in a clone without history, which cannot build that commit. */
export const isEarlierKnown = EarlierVersion.isKnown(commit);
if (!isEarlierKnown)
  console.log(`no upgrade is tried: this clone has no commit ${commit}; git fetch --unshallow gets it`);

/** Installs the earlier version on a node without drawbridge, with these values. */
export async function installEarlier(stage: NodeStage, values: string): Promise<void> {
  const earlier = await EarlierVersion.build(commit);
  try {
    await importImage(stage, earlier);
    const image = `--set image.repository=${drawbridgeRepository} --set image.tag=earlier`;
    await stage.sh(`helm install drawbridge ${earlier.chart} -n ${stage.system} --create-namespace ${image} ${values}`);
    await stage.rolledOut();
  } finally {
    await earlier.remove();
  }
}

/** The programs of the earlier version, in the image of Node that the Dockerfile gets here. */
async function importImage(stage: NodeStage, { program }: EarlierVersion): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'drawbridge-earlier-image-'));
  const archive = join(folder, 'image.tar');
  try {
    await writeLocalImage(archive, join(folder, 'files'), {
      name: `${drawbridgeRepository}:earlier`,
      config: { Entrypoint: ['/nodejs/bin/node', '/drawbridge.mjs'], Cmd: ['serve'] },
      fill: async (files) => {
        await baseImage.fill?.(files);
        await files.copy(program, '/drawbridge.mjs');
        await files.copy(join(program, '../health-thread.mjs'), '/health-thread.mjs');
      },
    });
    await stage.node.importImage(archive);
  } finally {
    await rm(folder, { recursive: true });
  }
}
