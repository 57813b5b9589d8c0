// One value for each client of a group, whose ids have no gaps.
#pragma once

#include <cstddef>
#include <vector>

#include "common/messages/parts.h"

namespace hydra {

template <typename Value>
class ByClient {
  public:
    explicit ByClient(const Ids& ids) : first_(ids.front()), values_(ids.size()) {}

    [[nodiscard]] bool holds(Id id) const { return id >= first_ && id - first_ < values_.size(); }
    Value& operator[](Id id) { return values_[id - first_]; }
    const Value& operator[](Id id) const { return values_[id - first_]; }

    [[nodiscard]] std::size_t size() const { return values_.size(); }
    [[nodiscard]] Id first() const { return first_; }
    auto begin() { return values_.begin(); }
    auto end() { return values_.end(); }

  private:
    Id first_;
    std::vector<Value> values_;
};

}  // namespace hydra
