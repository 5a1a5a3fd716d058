// Pointers that lie in memory themselves.

namespace pointers_to_structures {
struct Node {
    int value;
    Node* next;
};
DEVICE int result(int a, int b) {
    Node nodes[4];
    for (int i = 0; i < 4; i++) {
        nodes[i] = {a + i * b, i < 3 ? &nodes[i + 1] : nullptr};
    }
    nodes[1].next = &nodes[3];
    int total = 0;
    for (const Node* node = nodes; node; node = node->next) {
        total = total * 2 + node->value;
    }
    (*nodes[0].next).value = 1;
    return total + nodes[1].value;
}
}

namespace pointers_to_pointers {
DEVICE void advance(int** handle, int by) { *handle += by; }
DEVICE int result(int a, unsigned b) {
    int cells[4] = {a, a + 1, a + 2, a + 3};
    int* p = cells + 3;
    int** handle = &p;
    **handle += 11;
    *handle -= 2;
    advance(&p, b % 3);
    int* pair[2] = {p, cells};
    return *p + 3 * *pair[b & 1] + 5 * cells[3];
}
}
