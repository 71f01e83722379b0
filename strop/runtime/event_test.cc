#include "strop/runtime/event.h"

#include <gtest/gtest.h>

#include <thread>

namespace strop {
namespace {

TEST(Event, ReadyIsOneObject) {
  EXPECT_TRUE(Event::Ready()->IsReady());
  EXPECT_EQ(Event::Ready().get(), Event::Ready().get());
  EXPECT_EQ(Event::ReadyWith(OkStatus()).get(), Event::Ready().get());
  EXPECT_EQ(Event::ReadyWith(Internal("x"))->status().message(), "x");
}

TEST(Event, FirstSetWins) {
  EventRef event = Make<Event>();
  EXPECT_FALSE(event->IsReady());
  EXPECT_TRUE(event->Set(InvalidArgument("first")));
  EXPECT_FALSE(event->Set(OkStatus()));
  EXPECT_EQ(event->Await().message(), "first");
}

TEST(Event, CallbacksRunOnceAndMayReenter) {
  EventRef event = Make<Event>();
  int calls = 0;
  event->OnReady([&](const Status& status) {
    EXPECT_TRUE(status.ok());
    ++calls;
    event->OnReady([&](const Status&) { ++calls; });
  });
  EXPECT_EQ(calls, 0);
  event->Set(OkStatus());
  EXPECT_EQ(calls, 2);
  event->OnReady([&](const Status&) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(Event, CallbackMayDropTheLastHandle) {
  EventRef event = Make<Event>();
  Event* raw = event.get();
  raw->OnReady([&](const Status&) { event = nullptr; });
  raw->Set(OkStatus());
  EXPECT_FALSE(event);
}

TEST(Event, AwaitFromOtherThreads) {
  EventRef event = Make<Event>();
  std::thread a([&] { EXPECT_EQ(event->Await().message(), "late"); });
  std::thread b([event] { EXPECT_EQ(event->Await().message(), "late"); });
  event->Set(Internal("late"));
  a.join();
  b.join();
}

TEST(Event, WhenAllWaitsForAllAndTellsTheFirstError) {
  EXPECT_EQ(Event::WhenAll({}).get(), Event::Ready().get());
  EventRef a = Make<Event>(), b = Make<Event>(), c = Make<Event>();
  std::vector<EventRef> events = {a, nullptr, b, Event::Ready(), c};
  EventRef all = Event::WhenAll(events);
  c->Set(Internal("c"));
  b->Set(Internal("b"));
  EXPECT_FALSE(all->IsReady());
  a->Set(OkStatus());
  EXPECT_TRUE(all->IsReady());
  EXPECT_EQ(all->status().message(), "b");
  EXPECT_EQ(Event::WhenAll(events)->status().message(), "b");
}

TEST(Event, WhenAllFromManyThreads) {
  for (int round = 0; round < 50; ++round) {
    std::vector<EventRef> events;
    for (int i = 0; i < 4; ++i) events.push_back(Make<Event>());
    std::vector<std::thread> setters;
    for (EventRef& event : events) setters.emplace_back([event] { event->Set(OkStatus()); });
    EXPECT_TRUE(Event::WhenAll(events)->Await().ok());
    for (std::thread& setter : setters) setter.join();
  }
}

}  // namespace
}  // namespace strop
