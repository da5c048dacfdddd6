import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Labels, planPodLabels, type SelectionInput } from '../../../../src/access/builders/pod-selection.ts';
import type { SelectorView } from '../../../../src/access/stores/cluster-views.ts';
import { compileSelector } from '../../../../src/kit/label-selector.ts';
import { selectorView as view } from '../../../support/request-views.ts';
import { runs } from '../../../support/runs.ts';

const own = { 'access.drawbridge.dev/request': 'u' };
const labels = { ...own, app: 'web' };
const web = { matchLabels: { app: 'web' } };
const refusalOf = (selectors: readonly SelectorView[], allowed: SelectionInput['allowed'] = []) => {
  const selected = planPodLabels({ labels, baseLabels: own, selectors, allowed });
  return 'violation' in selected ? selected.violation : undefined;
};

describe('the selectors that match an access pod', () => {
  for (const kind of ['Service', 'PodDisruptionBudget', 'NetworkPolicy'] as const) {
    it(`must not belong to a ${kind} of the namespace`, () => {
      const violation = refusalOf([view(kind, 'other', {}), view(kind, 'web', web)]);
      assert.equal(violation?.code, 'PodIsSelected');
      assert.equal(
        violation?.message,
        `${kind} web selects the access pod by its labels (app=web), as one of its own pods; change podLabels or patchSpecOperations, or add {kind: ${kind}, name: web} to spec.allowedSelectors`,
      );
    });

    it(`of a ${kind} are named with the labels that it requires`, () => {
      const terms = {
        matchLabels: { app: 'web', ...own },
        matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }],
      };
      assert.match(refusalOf([view(kind, 'web', terms)])?.message ?? '', /by its labels \(app=web\), as one/);
    });

    it(`may belong to a ${kind} that the template lists`, () =>
      assert.equal(refusalOf([view(kind, 'web', web)], [{ kind, name: 'web' }]), undefined));
  }

  const harmless: [string, SelectorView][] = [
    ['a Service of other pods', view('Service', 'db', { matchLabels: { app: 'db' } })],
    ['a Service that asks for more labels', view('Service', 'v2', { matchLabels: { app: 'web', version: '2' } })],
    ['a Service without a selector', view('Service', 'external', undefined)],
    ['a Service with an empty selector', view('Service', 'external', { matchLabels: {} })],
    ['a policy for the whole namespace', view('NetworkPolicy', 'default-deny', {})],
    [
      'a policy for pods that lack a label',
      view('NetworkPolicy', 'strangers', { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] }),
    ],
    [
      'a selector that Kubernetes rejects',
      view('PodDisruptionBudget', 'bad', { matchExpressions: [{ key: 'app', operator: 'Like' }] }),
    ],
  ];
  for (const [title, selector] of harmless) {
    it(`may include ${title}`, () => assert.equal(refusalOf([selector]), undefined));
  }

  it('are allowed by kind and name together', () => {
    const listed = [{ kind: 'NetworkPolicy' as const, name: 'web' }];
    assert.equal(refusalOf([view('Service', 'web', web)], listed)?.code, 'PodIsSelected');
  });
});

describe('the labels of a workload that its access pod keeps', () => {
  const workloadLabels = { app: 'web', tier: 'backend', track: 'stable' };
  const deployment = (selector: Labels) => ({ kind: 'Deployment', name: 'web', selector: { matchLabels: selector } });
  const ingress = (name: string, selector: SelectorView['selector']): SelectorView => ({
    ...view('NetworkPolicy', name, selector),
    isolatesEgress: false,
  });
  const egress = (name: string, selector: SelectorView['selector']) => view('NetworkPolicy', name, selector);
  const byLabels = (matchLabels: Labels) => ({ matchLabels });

  const backend = byLabels({ tier: 'backend' });
  const deny = egress('deny', backend);
  const webService = view('Service', 'web', backend);

  const outcome = (selectors: readonly SelectorView[], over: Partial<SelectionInput> = {}): string => {
    const confinedAs = {
      kind: 'Deployment',
      name: 'web',
      labels: workloadLabels,
      workloads: [deployment({ app: 'web' })],
    };
    const selected = planPodLabels({ labels: own, baseLabels: own, selectors, confinedAs, ...over });
    if ('violation' in selected) return `${selected.violation.code}: ${selected.violation.message}`;
    return Object.keys(selected.labels)
      .filter((key) => !(key in own))
      .sort()
      .join();
  };

  const kept: [string, string, string][] = [
    ['none without policies', outcome([]), ''],
    ['none for a policy of other pods', outcome([egress('db', byLabels({ app: 'db' }))]), ''],
    ['none for a policy of all pods', outcome([egress('all', {})]), ''],
    ['those that a policy selects by', outcome([deny]), 'tier'],
    ['those that a policy for ingress selects by', outcome([ingress('deny', backend)]), 'tier'],
    [
      'those in expressions',
      outcome([egress('deny', { matchExpressions: [{ key: 'tier', operator: 'In', values: ['backend', 'x'] }] })]),
      'tier',
    ],
    [
      'those of all policies',
      outcome([egress('a', backend), ingress('b', byLabels({ track: 'stable' }))]),
      'tier,track',
    ],
    [
      'none that a Service selects, if only a policy for ingress is lost',
      outcome([ingress('deny', backend), webService]),
      '',
    ],
    [
      'none that a Service selects, if another policy isolates the pod anyway',
      outcome([egress('all', {}), deny, webService]),
      '',
    ],
    [
      'those for egress, if a Service selects by those for ingress',
      outcome([
        ingress('a', byLabels({ track: 'stable' })),
        egress('b', backend),
        view('Service', 'web', byLabels({ tier: 'backend', track: 'stable' })),
      ]),
      'tier',
    ],
    [
      'those of selectors that the template lists',
      outcome([deny, webService], {
        allowed: [{ kind: 'Service', name: 'web' }],
      }),
      'tier',
    ],
    [
      'those that the template sets, if it lists the Service',
      outcome([egress('deny', byLabels({ app: 'web' })), view('Service', 'web', web)], {
        labels: { ...own, app: 'web' },
        allowed: [{ kind: 'Service', name: 'web' }],
      }),
      'app',
    ],
  ];
  for (const [title, found, expected] of kept) {
    it(`are ${title}`, () => assert.equal(found, expected));
  }

  const lost: [string, string, RegExp][] = [
    [
      'by a Service',
      outcome([deny, webService]),
      /^ConfinementLost: NetworkPolicy deny isolates the egress of the pods of Deployment web by their labels \(tier=backend\), which the access pod does not get: with them, Service web would select it; add these labels to podLabels, and add \{kind: Service, name: web\} to spec\.allowedSelectors, or set the chart value accessPods to oz/,
    ],
    [
      'by a PodDisruptionBudget',
      outcome([deny, view('PodDisruptionBudget', 'web', backend)]),
      /with them, PodDisruptionBudget web would select it/,
    ],
    ['by the workload itself', outcome([egress('deny', byLabels({ app: 'web' }))]), /with them, Deployment web would/],
    [
      'while a policy for other pods selects it, which may allow more',
      outcome([
        deny,
        egress('open', {
          matchLabels: { tier: 'backend' },
          matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }],
        }),
      ]),
      /with them, NetworkPolicy open would select it/,
    ],
    [
      'by another label of the template',
      outcome([deny], { labels: { ...own, tier: 'console' } }),
      /podLabels or patchSpecOperations set other values; set these labels there, or set/,
    ],
    [
      'by a label that the policy excludes',
      outcome([egress('deny', { matchExpressions: [{ key: 'debug', operator: 'DoesNotExist' }] })], {
        labels: { ...own, debug: 'true' },
      }),
      /^ConfinementLost: NetworkPolicy deny isolates the egress of the pods of Deployment web, but does not select the access pod: its labels \(debug=true\) do not match the policy's podSelector; change or remove them in podLabels or patchSpecOperations, or set the chart value accessPods to oz/,
    ],
    [
      'by a label that the policy excludes, although it also selects by labels of the workload',
      outcome(
        [
          egress('deny', {
            matchLabels: { tier: 'backend' },
            matchExpressions: [{ key: 'debug', operator: 'DoesNotExist' }],
          }),
        ],
        { labels: { ...own, debug: 'true', other: 'x' } },
      ),
      /does not select the access pod: its labels \(debug=true\) do not match/,
    ],
    [
      'for one policy, if no other isolates the pod',
      outcome([ingress('b', byLabels({ track: 'stable' })), egress('a', backend), webService]),
      /^ConfinementLost: NetworkPolicy a /,
    ],
  ];
  for (const [title, found, message] of lost) {
    it(`are required: the request is denied if they are lost ${title}`, () => assert.match(found, message));
  }

  it('are listed up to five in the message', () => {
    const services = Array.from({ length: 7 }, (_, index) => view('Service', `s${index}`, backend));
    assert.match(
      outcome([deny, ...services]),
      /with them, Service s0, Service s1, Service s2, Service s3, Service s4 and 2 more would select it/,
    );
  });
});

describe('the labels of access pods, with any policies, Services, and labels', () => {
  it('keep every isolation, and match no selector that the template does not list', () => {
    const map = fc.dictionary(fc.constantFrom('app', 'tier', 'zone'), fc.constantFrom('a', 'b'), {
      noNullPrototype: true,
    });
    const expression = fc.oneof(
      fc.record({
        key: fc.constantFrom('app', 'tier', 'zone'),
        operator: fc.constantFrom('In', 'NotIn'),
        values: fc.constant<string[]>(['a']),
      }),
      fc.record({ key: fc.constantFrom('app', 'tier', 'zone'), operator: fc.constantFrom('Exists', 'DoesNotExist') }),
    );
    const selector = fc.record({ matchLabels: map, matchExpressions: fc.array(expression, { maxLength: 2 }) });
    const kind = fc.constantFrom<SelectorView['kind']>(
      'NetworkPolicy',
      'NetworkPolicy',
      'Service',
      'PodDisruptionBudget',
    );
    const selectors = fc.array(fc.tuple(kind, selector, fc.boolean()), { maxLength: 4 });
    const seen = { made: 0, refused: 0 };
    fc.assert(
      fc.property(map, map, selectors, map, (workloadLabels, podLabels, drawn, ofDeployment) => {
        const views = drawn.map(([of, selects, isolatesEgress], index) => ({
          ...view(of, `s${index}`, selects),
          isolatesEgress: of === 'NetworkPolicy' && isolatesEgress,
        }));
        const given: Labels = { ...podLabels, ...own };
        const deployment = { kind: 'Deployment', name: 'web', selector: { matchLabels: { x: 'y', ...ofDeployment } } };
        const confinedAs = { kind: 'Deployment', name: 'web', labels: workloadLabels, workloads: [deployment] };
        const found = planPodLabels({ labels: given, baseLabels: own, selectors: views, confinedAs });
        if ('violation' in found) {
          seen.refused += 1;
          return;
        }
        seen.made += 1;
        const matches = (one: { selector: SelectorView['selector'] }, of: Labels): boolean => {
          const compiled = compileSelector(one.selector);
          return 'matches' in compiled && compiled.matches(of);
        };
        for (const [key, value] of Object.entries(given)) assert.equal(found.labels[key], value);
        for (const [key, value] of Object.entries(found.labels)) {
          assert.equal(value, given[key] ?? workloadLabels[key], `${key} comes from somewhere`);
        }
        const policies = views.filter((one) => one.kind === 'NetworkPolicy');
        const isolating = policies.filter((one) => one.isolatesEgress && matches(one, workloadLabels));
        assert.ok(isolating.length === 0 || isolating.some((one) => matches(one, found.labels)));
        for (const one of views.filter((each) => each.kind !== 'NetworkPolicy' || !matches(each, workloadLabels))) {
          const isNone = one.kind === 'Service' && !selectsAnything(one.selector);
          assert.ok(isNone || !matches(one, found.labels) || matches(one, own), `${one.kind} ${one.name}`);
        }
        assert.ok(!matches(deployment, found.labels) || matches(deployment, given));
      }),
      { seed: 29, numRuns: runs(5000) },
    );
    assert.ok(seen.made > runs(500) && seen.refused > runs(500), JSON.stringify(seen));
  }).timeout(30_000);
});

const selectsAnything = (selector: SelectorView['selector']): boolean =>
  Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions ?? []).length > 0;
