import assert from 'node:assert/strict';
import {
  comparableVersion,
  heartbeatDueMs,
  planStatus,
  type StatusInput,
} from '../../../../src/binding/cluster-binding/plan-status.ts';
import { conditionFalse, conditionTrue } from '../../../../src/binding/conditions.ts';
import { commonView } from '../../../../src/binding/stores/common-view.ts';
import { type ClusterBindingView, clusterBindingView } from '../../../../src/binding/stores/provider-stores.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { clusterBindingManifest } from '../../../support/binding/objects.ts';

const nowMs = Date.UTC(2026, 10, 21, 9, 0, 0);
const ago = (ms: number): string => formatTime(nowMs - ms);
const ours = { namespace: 'kube-bind', name: 'kubeconfig-acme' };
const theirs = { namespace: 'kube-bind', name: 'of-another-cluster' };

function view(status: Record<string, unknown> = {}): ClusterBindingView {
  const object = clusterBindingManifest({ status });
  const common = commonView(object);
  assert.ok(common);
  const secretRef = { name: 'kubeconfig', key: 'kubeconfig' };
  return clusterBindingView(common, { kubeconfigSecretRef: secretRef, providerPrettyName: 'Acme' }, object);
}

const plan = (input: Partial<StatusInput> = {}) =>
  planStatus({
    view: view(),
    secrets: [ours],
    secretValid: conditionTrue('SecretValid'),
    version: '0.1.0',
    nowMs,
    ...input,
  });

/** The status after the first plan. */
const written = { ...plan().status };

describe('status of a ClusterBinding', () => {
  const beats: [what: string, last: string | undefined, dueInMs: number, beats: boolean][] = [
    ['no heartbeat was written yet', undefined, heartbeatDueMs, true],
    ['the last heartbeat is no time', 'soon', heartbeatDueMs, true],
    ['the last heartbeat is recent', ago(1000), heartbeatDueMs - 1000, false],
    ['the next heartbeat is nearly due', ago(heartbeatDueMs - 1000), 1000, false],
    ['the next heartbeat is due', ago(heartbeatDueMs), heartbeatDueMs, true],
    ['the last heartbeat is old', ago(3600_000), heartbeatDueMs, true],
    ['clocks differ a little', ago(-60_000), heartbeatDueMs + 60_000, false],
    ['the last heartbeat is a year in the future', ago(-365 * 24 * 3600_000), heartbeatDueMs, true],
  ];
  for (const [what, lastHeartbeatTime, dueInMs, isWritten] of beats) {
    it(`${isWritten ? 'writes a' : 'writes no'} heartbeat when ${what}`, () => {
      const { status, dueInMs: due } = plan({ view: view({ ...written, lastHeartbeatTime }) });
      assert.deepEqual(status, isWritten ? { lastHeartbeatTime: formatTime(nowMs) } : undefined);
      assert.equal(due, dueInMs);
    });
  }

  it('contains heartbeat and version even if the Secret is not valid', () => {
    const secretValid = conditionFalse('SecretValid', 'Warning', 'ProviderSecretNotFound', 'gone');
    const { status } = plan({ secretValid });
    assert.equal(status?.lastHeartbeatTime, formatTime(nowMs));
    assert.equal(status.konnectorVersion, 'v0.1.0');
    const [ready, secret] = status.conditions ?? [];
    assert.deepEqual([ready?.reason, secret?.reason], ['ProviderSecretNotFound', 'ProviderSecretNotFound']);
  });

  it('keeps unknown fields, and conditions of other writers', () => {
    const healthy = { type: 'Healthy', status: 'True', lastTransitionTime: ago(5000) };
    const conditions = [...(written.conditions ?? []), healthy];
    assert.equal(plan({ view: view({ ...written, conditions }), secretValid: undefined }).status, undefined);
  });

  it('reports version unknown if the version is not semantic', () => {
    const { status } = plan({ version: 'main' });
    assert.equal(status?.konnectorVersion, 'unknown');
    const condition = status.conditions?.find(({ type }) => type === 'ValidVersion');
    assert.deepEqual([condition?.status, condition?.severity, condition?.reason], ['False', 'Warning', 'ParseError']);
  });

  it('replaces a foreign Secret with the next heartbeat, not before', () => {
    const foreign = { ...written, consumerSecretRef: theirs, konnectorVersion: 'v0.8.1' };
    const early = plan({ view: view({ ...foreign, lastHeartbeatTime: ago(1000) }) });
    assert.deepEqual(early, { dueInMs: heartbeatDueMs - 1000 });
    assert.deepEqual(plan({ view: view({ ...foreign, lastHeartbeatTime: ago(heartbeatDueMs) }) }).status, {
      consumerSecretRef: ours,
      lastHeartbeatTime: formatTime(nowMs),
      konnectorVersion: 'v0.1.0',
    });
  });

  it('keeps a reference to any of its own Secrets', () => {
    const status = { ...written, consumerSecretRef: theirs };
    assert.equal(plan({ view: view(status), secrets: [ours, theirs] }).status, undefined);
  });
});

describe('version of the konnector', () => {
  const versions: [string, string | undefined][] = [
    ['0.1.0', 'v0.1.0'],
    ['v1.2.3', 'v1.2.3'],
    ['1.2.3-rc.1', 'v1.2.3'],
    ['1.2.3+build.7', 'v1.2.3'],
    ['1.2', undefined],
    ['', undefined],
    ['v1.2.3 of mine', undefined],
  ];
  for (const [found, said] of versions) {
    it(`is ${said} for ${JSON.stringify(found)}`, () => assert.equal(comparableVersion(found), said));
  }
});
