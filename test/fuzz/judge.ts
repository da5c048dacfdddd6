import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import jsonPatch from 'fast-json-patch';
import type { TemplateState } from '../../src/access/policy/request-policy.ts';
import { entryRules, readyTemplate, World } from '../unit/admission/support.ts';
import { mustRefuse, type ReferenceWorld } from './reference-policy.ts';
import type { FuzzCase } from './reviews.ts';

/** Counts of answers by kind, to check that the inputs reach each kind. */
export interface Tally {
  inputs: number;
  /** Answered with a 4xx: not a review of the route. */
  malformed: number;
  allowed: number;
  /** Denied, as the reference policy requires. */
  refused: number;
  /** Denied for a reason that the reference policy does not check. */
  stricter: number;
  /** Count of each reason of the reference policy. */
  readonly reasons: Map<string, number>;
}

export const newTally = (): Tally => ({
  inputs: 0,
  malformed: 0,
  allowed: 0,
  refused: 0,
  stricter: 0,
  reasons: new Map(),
});

const DEADLINE_MS = 5_000;
const MALFORMED = [400, 404, 405, 413, 415];

/** Sends cases to the webhooks in this process, without a socket, and compares each answer with the reference policy. */
export class Judge {
  readonly tally = newTally();
  readonly #world = new World();

  /** @throws AssertionError if an answer is missing or invalid, or allows what the policy denies. */
  async judge({ path, body, world }: FuzzCase): Promise<void> {
    this.#arrange(world);
    const answer = await inTime(this.#post(path, body));
    this.tally.inputs++;
    if (answer.status !== 200) {
      assert.ok(MALFORMED.includes(answer.status), `${answer.status}: ${answer.text}`);
      this.tally.malformed++;
      return;
    }
    const sent = JSON.parse(body) as unknown;
    const { response } = JSON.parse(answer.text) as { response: Record<string, unknown> };
    assert.equal(response['uid'], (sent as { request: { uid: unknown } }).request.uid);
    const reason = mustRefuse(path, sent, world);
    if (reason !== undefined) this.tally.reasons.set(reason, (this.tally.reasons.get(reason) ?? 0) + 1);
    if (response['allowed'] === true) {
      assert.equal(reason, undefined, `allowed, and must be refused: ${reason}\n${answer.text}`);
      if (path.startsWith('/mutate-')) assertAttested(sent, response);
      this.tally.allowed++;
    } else {
      assert.equal(response['allowed'], false);
      assert.notEqual(path, '/watch-v1-pod', 'a webhook that only watches denies no call');
      assert.match((response['status'] as { message: string }).message, /^[A-Z][A-Za-z]+: ./);
      if (reason === undefined) this.tally.stricter++;
      else this.tally.refused++;
    }
  }

  #arrange({ template, holds, limits, lacks, pod, journalWorks }: ReferenceWorld): void {
    const world = this.#world;
    // The recorded calls are not used here and would fill the memory.
    for (const list of [world.lines, world.connectEvents, world.outcomes, world.asked]) list.length = 0;
    world.holds = holds;
    world.journalWorks = journalWorks;
    world.limits = limits.map((use) => ({ scope: 'user', name: 'alice', ...use }));
    world.lacks = ({ verb, resource, subresource }) =>
      lacks.includes(`${verb} ${subresource === undefined ? resource : `${resource}/${subresource}`}`);
    world.template = () => Promise.resolve(stateOf(template));
    const subjects = (pod?.subjects ?? []).map((name) => ({ kind: 'User' as const, name }));
    const session = pod?.viaGateway ? { viaGateway: true as const } : {};
    const grants = [{ request: 'req', template: 'shell', subjects, rules: entryRules, ...session }];
    world.pod = pod && { uid: 'p-1', isAccessPod: pod.ours, grants };
  }

  #post(path: string, body: string): Promise<{ status: number; text: string }> {
    const request = new IncomingMessage(new Socket());
    const bytes = Buffer.from(body);
    request.method = 'POST';
    request.url = path;
    request.headers = { 'content-type': 'application/json', 'content-length': String(bytes.length) };
    request.complete = true;
    request.push(bytes);
    request.push(null);
    const response = new ServerResponse(request);
    return new Promise((resolve) => {
      response.end = ((text: unknown) => {
        resolve({ status: response.statusCode, text: String(text) });
        // As a response with a socket does: the app then returns the memory of the call.
        response.emit('close');
        return response;
      }) as typeof response.end;
      this.#world.app(request, response);
    });
  }
}

function stateOf(template: ReferenceWorld['template']): TemplateState {
  if (!template) return { found: false };
  const { ready, observed, allowedGroups, defaultDuration, maxDuration } = template;
  const state = readyTemplate({ ready, observedGeneration: observed ? 1 : 0 });
  assert.ok(state.found);
  const accessConfig = {
    ...state.spec.accessConfig,
    allowedGroups: [...allowedGroups],
    defaultDuration,
    maxDuration,
  };
  return { ...state, spec: { ...state.spec, accessConfig } };
}

/** A new request leaves the mutating webhook with the caller as its requester, only the server's finalizer, and no owners. */
function assertAttested(sent: unknown, { patch = '' }: { patch?: unknown }): void {
  const { request } = sent as {
    request: { operation: string; object: object; userInfo: { username: string; groups?: string[] } };
  };
  if (request.operation !== 'CREATE') return;
  const ops = JSON.parse(Buffer.from(String(patch), 'base64').toString()) as Parameters<typeof jsonPatch.applyPatch>[1];
  const patched = jsonPatch.applyPatch(structuredClone(request.object), ops, true).newDocument as {
    metadata: { finalizers: string[]; ownerReferences?: unknown };
    spec: { requester: { username: string; groups: string[] } };
  };
  assert.equal(patched.spec.requester.username, request.userInfo.username);
  assert.deepEqual(patched.spec.requester.groups, request.userInfo.groups ?? []);
  assert.deepEqual(patched.metadata.finalizers, ['access.drawbridge.dev/revoke']);
  assert.equal(patched.metadata.ownerReferences, undefined);
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${DEADLINE_MS} ms`)), DEADLINE_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
