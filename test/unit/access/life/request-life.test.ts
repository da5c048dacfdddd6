import assert from 'node:assert/strict';
import { pods, roleBindings, roles } from '../../../../src/api/resources.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { LifeStage } from './life-stage.ts';

describe('the life of a request', () => {
  let stage: LifeStage;
  beforeEach(async () => {
    stage = new LifeStage();
    await stage.start();
  });
  afterEach(() => stage.stop());

  const childrenLeft = (): string[] => [roleBindings, roles, pods].flatMap((resource) => stage.cluster.names(resource));
  const granted = async (): Promise<void> => {
    stage.ask();
    await stage.clock.advance(10);
    stage.podBecomesReady();
    await stage.clock.advance(10);
    assert.equal((stage.request?.status as { ready?: boolean } | undefined)?.ready, true);
    assert.equal(childrenLeft().length, 3);
  };

  it('runs from the request to Ready and to nothing', async () => {
    await granted();
    await stage.clock.advance(600_000);
    assert.deepEqual(childrenLeft(), []);
    assert.equal(stage.request, undefined);
    assert.deepEqual(stage.told, ['grant granted', 'revocation revoked']);
  });

  it('tells of a grant once, however often its objects had to be tried', async () => {
    let faults = 3;
    stage.cluster.fault = ({ verb, plural }) => {
      if (verb === 'create' && plural === 'roles' && faults-- > 0) throw new ApiError(500, 'InternalError', 'not now');
    };
    stage.ask();
    await stage.clock.advance(10_000);
    assert.equal(childrenLeft().length, 3);
    assert.deepEqual(stage.told, ['grant granted']);
  });
});
