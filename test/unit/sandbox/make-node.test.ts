import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

describe('make node', () => {
  it('fails in one line where there is no root', () => {
    const asNobody = 'data:text/javascript,process.getuid = () => 65534';
    const command = ['--import', asNobody, '--import', 'tsx', 'sandbox/node/main.ts'];
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' });
    assert.deepEqual(
      [status, stdout, stderr],
      [
        1,
        '',
        `a node needs Linux and root, for containers and network namespaces; this is ${process.platform}, user id 65534\n`,
      ],
    );
  });
});
