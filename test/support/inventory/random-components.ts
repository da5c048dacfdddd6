import type { SimComponent, SimRegistration } from './simulation.ts';

/** A component that reads its inputs. By default it patches the sum of its inputs plus 1 after 100 ms. */
export function simComponent(
  name: string,
  does: Partial<SimComponent> = {},
  registration: Partial<SimRegistration> = {},
): SimComponent {
  const { needs = [], likes = [], specFields = [] } = does;
  const others = [...needs, ...likes].map((other) => `/status/outputs/${other}/value` as const);
  const fields = specFields.map((field) => `/spec/cluster/${field}` as const);
  return {
    name,
    registration: {
      name,
      reads: [...others, ...fields],
      intervalSeconds: 3600,
      timeoutSeconds: 5,
      leaseSeconds: 60,
      maxRunSeconds: 3600,
      maxConcurrent: 32,
      retry: { baseSeconds: 1, capSeconds: 300 },
      ...registration,
    },
    value: (inputs) => inputs.reduce((sum, input) => sum + input, 1),
    patches: true,
    durationMs: 100,
    ...does,
    needs,
    likes,
    specFields,
  };
}

/** `endless`: acyclic except for two components that never converge. */
export type Graph = 'acyclic' | 'circles' | 'endless';

/** Up to eight components that read each other's outputs. In some graphs one of them produces the kubeconfig that others use. */
export function randomComponents(random: () => number, graph: Graph): SimComponent[] {
  const below = (n: number): number => Math.floor(random() * n);
  const count = 1 + Math.min(below(8), below(8));
  const nameOf = (index: number): string => `c${index}`;
  const maker = random() < 0.6 ? nameOf(below(count)) : undefined;
  const components = Array.from({ length: count }, (_, index) => {
    const name = nameOf(index);
    const others = Array.from({ length: graph === 'circles' ? count : index }, (_unused, other) => other)
      .filter((other) => other !== index && random() < 0.4)
      .map(nameOf);
    const needs = others.filter((other) => other === maker || random() < 0.6);
    return simComponent(
      name,
      {
        needs,
        likes: others.filter((other) => !needs.includes(other)),
        specFields: random() < 0.5 ? ['a'] : [],
        // In cycles values only grow, up to a bound, so that they converge.
        value:
          graph === 'circles'
            ? (inputs) => Math.min(9, 1 + Math.max(0, ...inputs))
            : (inputs) => inputs.reduce((sum, input) => (sum * 31 + input + 7) % 29, index),
        patches: random() < 0.5,
        durationMs: 1 + below(300),
        // In cycles they would wait for one another.
        waitsForReaders: graph !== 'circles' && random() < 0.5,
        makesKubeconfig: name === maker,
        usesKubeconfigOf: maker !== undefined && needs.includes(maker) ? maker : undefined,
      },
      randomRegistration(random),
    );
  });
  return graph === 'endless' ? [...components, ...neverConverging(random)] : components;
}

/** Identifies these components by name. */
export const isEndless = ({ name }: Pick<SimComponent, 'name'>): boolean => name.startsWith('endless');

function neverConverging(random: () => number): SimComponent[] {
  const durationMs = 1 + Math.floor(random() * 100);
  const rest = { durationMs, patches: random() < 0.5, isSynchronous: true };
  return [
    simComponent('endless0', { ...rest, likes: ['endless1'], value: ([other = 0]) => (1 + other) % 2 }),
    simComponent('endless1', { ...rest, likes: ['endless0'], value: ([other = 0]) => other }),
  ];
}

function randomRegistration(random: () => number): Partial<SimRegistration> {
  return {
    maxConcurrent: 1 + Math.floor(random() * 3),
    retry: { baseSeconds: 1, capSeconds: 8 },
    leaseSeconds: 20,
    maxRunSeconds: 120,
    timeoutSeconds: 2,
    intervalSeconds: ((random() < 0.2 ? 7 : 30) + Math.floor(random() * 60)) * 60,
  };
}
