export function Inventory() {
  return <h1>Inventory</h1>;
}
