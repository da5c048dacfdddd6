import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const lines = readFileSync(join(root, 'Dockerfile'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));
const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')));
const argumentOf = (instruction: string): string =>
  last.find((line) => line.startsWith(`${instruction} `))?.slice(instruction.length + 1) ?? '';

describe('the image', () => {
  it('is built without install scripts of packages', () => assert.ok(lines.includes('RUN npm ci --ignore-scripts')));

  it('has no shell and does not run as root', () => {
    const name = /^\$\{(\w+)\}$/.exec(argumentOf('FROM'))?.[1];
    const image = lines.find((line) => line.startsWith(`ARG ${name}=`));
    assert.match(image ?? '', /=gcr\.io\/distroless\/nodejs\d+-\w+:nonroot$/);
    assert.equal(argumentOf('USER'), '65532:65532');
    assert.ok(!last.some((line) => line.startsWith('RUN ')));
  });

  it('can be built on base images that are pinned by digest', () => {
    const images = lines.filter((line) => line.startsWith('FROM ')).map((line) => line.split(' ')[1] ?? '');
    assert.equal(images.length, 2);
    for (const image of images) assert.match(image, /^\$\{(BUILD|RUNTIME)_IMAGE\}$/);
  });

  it('contains one file, which runs without other files', function () {
    this.timeout(20_000);
    const [from, source = '', target = ''] = argumentOf('COPY').split(' ');
    assert.deepEqual([from, basename(source)], ['--from=build', 'drawbridge.js']);
    const [node, program] = JSON.parse(argumentOf('ENTRYPOINT')) as string[];
    assert.deepEqual([node, program], ['/nodejs/bin/node', target]);

    // For the inventory, the chart adds a Node flag.
    const deployment = readFileSync(join(root, 'charts/drawbridge/templates/deployment.yaml'), 'utf8');
    const [, command = ''] = /^ +command: \[(.*)\]$/m.exec(deployment) ?? [];
    const [chartNode, flag = '', chartProgram] = command.split(', ');
    assert.deepEqual([chartNode, chartProgram], [node, program]);

    const bundle = join(root, 'dist/drawbridge.js');
    if (!existsSync(bundle)) throw new Error(`${bundle} is missing: run npm run build`);
    const folder = mkdtempSync(join(tmpdir(), 'drawbridge-image-'));
    try {
      copyFileSync(bundle, join(folder, basename(target)));
      const ran = spawnSync(process.execPath, [flag, join(folder, basename(target)), '--version'], {
        cwd: folder,
        env: {},
        encoding: 'utf8',
      });
      assert.match(ran.stdout, /^drawbridge \d+\.\d+\.\d+\n$/, ran.stderr);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
