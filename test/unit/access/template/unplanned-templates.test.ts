import assert from 'node:assert/strict';
import { notPlanned } from '../../../../src/access/policy/template-policy.ts';
import type { TemplateView } from '../../../../src/access/stores/access-views.ts';
import { TemplateReconciler } from '../../../../src/access/template/template-reconciler.ts';
import { podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { TemplateStatus } from '../../../../src/api/access/status.ts';
import { accessConfig } from '../../../support/access-objects.ts';
import { policiesInForce } from '../../../support/policies.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

type Unanswered = 'unanswered';
type Judged =
  | Unanswered
  | { readonly code: string; readonly message: string }
  | { readonly unknownFields: readonly string[] }
  | typeof notPlanned
  | undefined;

const judgementOf = (judged: Judged) => {
  if (judged === notPlanned) return notPlanned;
  if (judged === 'unanswered') return { isUnanswered: true };
  if (judged && 'unknownFields' in judged) return judged;
  return judged ? { violation: judged } : {};
};

interface Stage {
  judged: Judged;
  writes: number;
  status: TemplateStatus | undefined;
}

describe('the status of a template that is not judged yet', () => {
  /** A reconciler of a template of generation 2, with what its judge answers and the status that it wrote last. */
  const stage = ({ conditions = [], ready }: TemplateStatus, judged: Judged) => {
    const template = {
      key: 'payments/shell',
      uid: 't-1',
      generation: 2,
      conditions,
      ready,
      spec: { accessConfig },
    } as unknown as TemplateView;
    const clock = new SimulatedClock();
    const state = { judged, writes: 0, status: undefined } as Stage;
    const reconciler = new TemplateReconciler({
      resource: podAccessTemplates,
      templates: { get: () => template },
      workload: () => undefined,
      authors: { violation: () => Promise.resolve(undefined) },
      policies: policiesInForce,
      judge: { judge: () => Promise.resolve(judgementOf(state.judged)), forget: () => undefined },
      planValidMessage: 'planned',
      client: {
        mergePatch: async (_resource: unknown, _name: unknown, patch: { status: TemplateStatus }) => {
          state.writes++;
          state.status = patch.status;
        },
      },
      clock,
    } as never);
    const reconcile = () => reconciler.reconcile('payments/shell', new AbortController().signal);
    return { state, clock, reconcile };
  };
  const written = async (judged: Judged, before: TemplateStatus): Promise<TemplateStatus | undefined> => {
    const { state, reconcile } = stage(before, judged);
    await reconcile();
    return state.status;
  };
  const stateOf = (status: TemplateStatus | undefined) => [
    status?.ready,
    ...['AccessPlanValid', 'Ready', 'Reconciling'].map((type) => {
      const found = status?.conditions?.find((condition) => condition.type === type);
      return found && `${found.status} ${found.reason} ${found.observedGeneration}`;
    }),
  ];
  const violation = { code: 'PodIsSelected', message: 'Service web selects the access pod' };
  const unknown = [false, 'Unknown NotPlanned 2', 'False NotPlanned 2', 'True NotPlanned 2'];

  for (const judged of [violation, undefined]) {
    it(`stays as it is, without a write, for a version that an earlier leader judged ${judged?.code ?? 'ready'}`, async () => {
      const before = (await written(judged, {})) ?? {};
      assert.equal(await written(notPlanned, before), undefined);
    });
  }

  it('is the same whether the API server accepts the objects of a grant or gives no answer, so an answer costs no write', async () => {
    const before = (await written('unanswered', {})) ?? {};
    assert.equal(await written({ unknownFields: [] }, before), undefined);
  });

  const refusal = { code: 'ResourceRefused', message: 'exceeded quota; the server checks again, usually every 40 s' };
  for (const judged of [refusal, undefined]) {
    it(`stays as it is, without a write, if the API server then gives no answer about a version that was ${judged?.code ?? 'ready'}`, async () => {
      const before = (await written(judged, {})) ?? {};
      assert.equal(await written('unanswered', before), undefined);
    });
  }

  it('is that of the plan if the API server never gave an answer', async () => {
    for (const before of [{}, (await written(violation, {})) ?? {}])
      assert.equal(stateOf(await written('unanswered', before))[1], 'True Success 2');
  });

  const versions: [title: string, earlier: () => Promise<TemplateStatus>][] = [
    ['a new template', async () => ({})],
    [
      'a new version of a judged template',
      async () => {
        const { conditions = [], ready = false } = (await written(violation, {})) ?? {};
        return { conditions: conditions.map((condition) => ({ ...condition, observedGeneration: 1 })), ready };
      },
    ],
  ];
  for (const [title, earlier] of versions) {
    it(`costs one write for ${title}, with the judgement, if that is made within 5 s`, async () => {
      const { state, clock, reconcile } = stage(await earlier(), notPlanned);
      assert.deepEqual(await reconcile(), { kind: 'after', delayMs: 5000 });
      await clock.advance(4999);
      assert.deepEqual(await reconcile(), { kind: 'after', delayMs: 1 });
      assert.equal(state.writes, 0);
      state.judged = undefined;
      await reconcile();
      assert.equal(state.writes, 1);
      assert.equal(stateOf(state.status)[1], 'True Success 2');
    });

    it(`is Unknown, and not ready, for ${title} that is not judged within 5 s`, async () => {
      const { state, clock, reconcile } = stage(await earlier(), notPlanned);
      await reconcile();
      await clock.advance(5000);
      await reconcile();
      assert.deepEqual(stateOf(state.status), unknown);
    });
  }
});
