import assert from 'node:assert/strict';
import { connectReview, paths, World } from './support.ts';

describe('watching pod entries', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('writes an Event and an audit line, without the command', async () => {
    const response = await world.review(paths.watchPod, connectReview('exec'));
    assert.equal(response.allowed, true);
    assert.deepEqual(world.entries, [
      {
        reason: 'PodExec',
        namespace: 'payments',
        pod: 'web-0',
        note: 'alice ran a command in container app (an interactive session)',
      },
    ]);
    const [line] = world.lines;
    assert.equal(line?.event, 'exec');
    assert.equal(line?.verdict, 'observed');
    assert.equal(line?.what.operation, 'CONNECT');
    assert.equal(line?.pod, 'web-0');
    assert.equal(line?.container, 'app');
    assert.equal(line?.interactive, true);
    assert.doesNotMatch(JSON.stringify(world.lines) + JSON.stringify(world.entries), /hunter2/);
  });

  it('tells attach from exec, and a terminal from none', async () => {
    await world.review(paths.watchPod, connectReview('attach', { object: { stdin: true, tty: false } }));
    assert.equal(world.entries[0]?.reason, 'PodAttach');
    assert.match(world.entries[0]?.note ?? '', /attached to the default container \(no terminal\)/);
    assert.equal(world.lines[0]?.event, 'attach');
    assert.equal(world.lines[0]?.interactive, false);
  });

  it('writes no Event on dry run', async () => {
    await world.review(paths.watchPod, connectReview('exec', { dryRun: true }));
    assert.deepEqual(world.entries, []);
    assert.equal(world.lines[0]?.dryRun, true);
  });

  it('never refuses: not without a journal, not when the Event fails, not for odd objects', async () => {
    world.journalWorks = false;
    for (const object of [null, [], 'x', 7, { container: 7, stdin: 'yes' }]) {
      assert.equal((await world.review(paths.watchPod, connectReview('exec', { object }))).allowed, true);
    }
    world.ports.podEntered = () => {
      throw new Error('no events today');
    };
    assert.equal((await world.review(paths.watchPod, connectReview('exec'))).allowed, true);
  });
});
